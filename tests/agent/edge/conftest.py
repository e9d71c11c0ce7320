"""What the tests of several edges need."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest


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
