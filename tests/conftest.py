"""Options of the whole suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kubeconfig FILE`: check the conformance list against that cluster instead of an embedded one."""
    parser.addoption("--kubeconfig", metavar="FILE", help="run tests/local/conformance against this cluster")
