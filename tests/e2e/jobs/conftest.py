"""A cluster with the definitions of jobs for each file; no deadline is too short, the lack of room is soon told, and no job
rests between its restarts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import RunningCluster, StartCluster
from tests.e2e.jobs.manifests import DEFINITIONS, Jobs

SETTINGS = "ageing: {shortest_wait_seconds: 0}\njobs: {no_room_seconds: 3, restart_seconds: 0}\n"


@pytest.fixture(scope="module")
def settings() -> Iterator[tuple[str, ...]]:
    """Options of `sublet up`."""
    with tempfile.TemporaryDirectory(prefix="sublet-e2e-") as folder:
        file = Path(folder) / "scheduler.yaml"
        file.write_text(SETTINGS)
        yield ("--scheduler-settings", str(file))


@pytest.fixture(scope="module")
def cluster(start_cluster: StartCluster, settings: tuple[str, ...]) -> RunningCluster:
    """With real processes."""
    return defined(start_cluster(options=settings))


@pytest.fixture
def jobs(cluster: RunningCluster) -> Jobs:
    return Jobs(cluster)


def defined(found: RunningCluster) -> RunningCluster:
    """The same, with the definitions."""
    for folder in DEFINITIONS:
        found.kubectl("apply", "-k", folder)
    return found
