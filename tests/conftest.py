"""What every test may count on."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

# Properties with few examples where somebody waits for them, with many in the slow tier.
# No property is judged by speed. A fixture is as one example left it for the next: what is given is never changed.
_ANY_SPEED = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("brief", max_examples=15, **_ANY_SPEED)
settings.register_profile("long", max_examples=200, **_ANY_SPEED)
settings.load_profile(os.environ.get("SUBLET_EXAMPLES", "brief"))

# Machines without a kubectl of their own have the one that `make dev` installs.
os.environ["PATH"] = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"

# An ordinary user starts with 1024 descriptors, which this many tests in one process may need at a time.
_, _most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (_most, _most))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kubeconfig FILE`: on that cluster, not an embedded one."""
    told = "run embedded/tests/conformance, tests/local/node/streams or one folder of tests/e2e on this control plane"
    with contextlib.suppress(ValueError):  # those of the embedded cluster have it, too
        parser.addoption("--kubeconfig", metavar="FILE", help=told)


def pytest_runtest_teardown() -> None:
    """A program's `main` sets up its log on standard error, and that of one test is closed for the next."""
    structlog.reset_defaults()


@contextlib.contextmanager
def _starved() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def starved() -> Callable[[], AbstractContextManager[None]]:
    """A stretch in which this process can open nothing more; what is open stays usable."""
    return _starved
