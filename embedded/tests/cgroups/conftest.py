"""Throw-away cgroup prefixes of this machine."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.cgroups.hierarchy import Cgroups, UnsuitableKernel, discover

_serial = itertools.count()


@pytest.fixture
def cgroups() -> Iterator[Cgroups]:
    """A prefix of its own on this machine's cgroup v1; gone after the test whatever happened."""
    try:
        made = Cgroups(discover(Path("/sys/fs/cgroup"), f"test-{os.getpid()}-{next(_serial)}"))
    except UnsuitableKernel as reason:
        pytest.skip(f"{reason}; run as root on a machine with cgroup v1")
    yield made
    asyncio.run(made.remove(made.layout.prefix))
    assert not made.exists(made.layout.prefix)
