"""What every test may count on."""

from __future__ import annotations

import resource

import pytest

# An ordinary user starts with 1024 descriptors, which this many tests in one process may need at a time.
_, _most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (_most, _most))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kubeconfig FILE`: check the conformance list against that cluster instead of an embedded one."""
    parser.addoption("--kubeconfig", metavar="FILE", help="run tests/local/conformance against this cluster")
