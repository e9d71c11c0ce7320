"""A node short of memory evicts a member of a job that trains: it is told, the job saves, and goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.checkpoints.conftest import WORKERS, Training
from tests.e2e.conftest import ALWAYS_ROOM, RunningCluster, StartCluster, until
from tests.e2e.jobs.conftest import defined
from tests.e2e.jobs.manifests import Manifest, training
from tests.e2e.test_eviction import pressure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HELD_BYTES = psutil.virtual_memory().total // 200
"""Beside what it trains: enough for its end to be worth it."""
HOLDS = (
    f"import runpy, sys; held = b'x' * {HELD_BYTES}; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
)
"""And runs the command that follows."""


@pytest.fixture(scope="module")
def cluster(start_cluster: StartCluster) -> Iterator[RunningCluster]:
    """One node that lends."""
    yield defined(start_cluster(agent_settings=ALWAYS_ROOM))


def batch_job(trains: Training) -> Manifest:
    """On lent resources."""
    amounts = {"kubernetes.io/batch-cpu": "100", "kubernetes.io/batch-memory": str(HELD_BYTES + (96 << 20))}
    container = {
        "name": "main", "image": "python", "command": [trains.python, "-c", HOLDS, *trains.command(300, 0.03)[1:]],
        "env": [{"name": name, "value": value} for name, value in trains.variables.items()],
        "resources": {"requests": amounts, "limits": amounts},
    }  # fmt: skip
    made = training("model", "", replicas=WORKERS, schedulingConfig={"priorityClassName": "koord-batch"}, maxRetry=1)
    made["spec"]["checkpoint"] = {"url": trains.url, "gracePeriod": "30s"}
    made["spec"]["template"] = {
        "metadata": {"labels": {"koordinator.sh/qosClass": "BE"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 10},
    }
    return made


def test_it_goes_on_at_the_saved_step(cluster: RunningCluster, tmp_path: Path) -> None:
    trains = Training(cluster, tmp_path)
    job = trains.submit(batch_job(trains))
    trains.all_run("model", WORKERS)
    trains.reaches_step("model", 20)
    before = trains.uids("model")
    with trains.watched("model") as notices, pressure(cluster):
        told = until(notices, 60.0)
        assert told, cluster.sublet("explain", "evictions").stdout
        assert {(each["reason"], each["by"]) for each in told.values()} == {
            ("BEMemoryEvict", f"agent of node {cluster.endpoints['node']}")
        }
        assert until(lambda: trains.uids("model").isdisjoint(before), 60.0), json.dumps(trains.pods("model"))
    trains.hurry()
    status = trains.reaches(job, "Succeeded", 180.0)
    saved = trains.saved_steps("model")
    assert saved and trains.begun_after("model") == [saved[-1]] * WORKERS and saved[-1] >= 20
    assert trains.losses("model") == [trains.uninterrupted_loss()] * WORKERS
    assert status["failures"] == 0 and status["evictions"] >= 1, status
    trains.delete(job)
