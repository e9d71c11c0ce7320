"""What every test of the embedded cluster may count on."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

# Properties with few examples where somebody waits for them. No property is judged by speed.
_ANY_SPEED = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("brief", max_examples=15, **_ANY_SPEED)
settings.register_profile("long", max_examples=200, **_ANY_SPEED)
settings.load_profile(os.environ.get("SUBLET_EXAMPLES", "brief"))

# Machines without a kubectl of their own have the one that is installed beside Python.
os.environ["PATH"] = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"

# An ordinary user starts with 1024 descriptors, which this many tests in one process may need at a time.
_, _most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (_most, _most))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kubeconfig FILE`: on that cluster, not an embedded one. Whoever runs these tests beside others may have it."""
    with contextlib.suppress(ValueError):
        parser.addoption("--kubeconfig", metavar="FILE", help="run the conformance list on this control plane")


def pytest_runtest_teardown() -> None:
    """A program's `main` sets up its log on standard error, and that of one test is closed for the next."""
    structlog.reset_defaults()
