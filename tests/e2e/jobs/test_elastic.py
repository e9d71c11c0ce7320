"""An elastic TrainingJob with real processes: it shrinks for a gang of higher priority, is told, and grows again."""

from __future__ import annotations

import sys

import pytest

from tests.e2e.conftest import RunningCluster, StartCluster, until
from tests.e2e.jobs.conftest import defined
from tests.e2e.jobs.manifests import SLEEPS, Jobs, Manifest, training
from tests.e2e.jobs.test_gpu_nodes import CLASSES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FOLLOWS = """
import os, time
from sublet_sdk import world
print("nodes", os.environ["PET_NNODES"], "at", os.environ["PET_RDZV_ENDPOINT"], flush=True)
generation = 0
while True:
    now = world()
    if now.generation != generation and now.rank is not None:
        generation = now.generation
        print(f"{now.rank} of {now.size}", flush=True)
    time.sleep(0.1)
"""
MINIMUM, MAXIMUM = 2, 9
ELASTIC = {
    "enabled": True,
    "minWorkers": MINIMUM,
    "maxWorkers": MAXIMUM,
    "scalePolicy": {"scaleUpStep": 1, "scaleUpCooldown": "2s", "scaleDownCooldown": "2s"},
}


@pytest.fixture(scope="module")
def cluster(start_cluster: StartCluster, settings: tuple[str, ...]) -> RunningCluster:
    """A node on which no more than five workers have room."""
    found = defined(start_cluster(options=["--node-cpu", "8", "--node-memory", "8Gi", *settings]))
    found.apply(CLASSES)
    return found


def whole(name: str, script: str, replicas: int, priority: str, **spec: object) -> Manifest:
    container = {"name": "main", "image": "python", "command": [sys.executable, "-c", script]}
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    resources = {"minReplicas": replicas, "replicaResources": {"cpu": "1500m", "memory": "64Mi"}}
    terms = {"priorityClassName": priority}
    return training(name, "", template=template, resources=resources, schedulingConfig=terms, **spec)


def told(jobs: Jobs, pods: dict[str, Manifest]) -> list[str]:
    """The last line of each process, in the order of ranks."""
    return sorted(jobs.cluster.kubectl("logs", name).splitlines()[-1] for name in pods)


def everybody(size: int) -> list[str]:
    return [f"{rank} of {size}" for rank in range(size)]


def know(jobs: Jobs, name: str, size: int) -> bool:
    """Whether so many processes run, and each of them knows how many they are and which of them it is."""
    running = {key: pod for key, pod in jobs.pods(name).items() if pod["status"].get("phase") == "Running"}
    return len(running) == size and told(jobs, running) == everybody(size)


def test_it_shrinks_for_a_gang_is_told_and_grows_again(jobs: Jobs) -> None:
    """Two of its pods go for the two of the gang, and no other job's: its first ones run on all the time."""
    lone = jobs.submit(whole("lone", SLEEPS, 1, "low"))
    jobs.reaches(lone, "Running")
    name = jobs.submit(whole("tells", FOLLOWS, MINIMUM, "low", elasticConfig=ELASTIC))
    full = lambda: [each["reason"] for each in jobs.status(name).get("events", [])].count("Shrunk") > 0  # noqa: E731
    assert until(full, 90.0), jobs.status(name)
    size = jobs.status(name)["world"]["size"]
    assert size >= MINIMUM + 2
    assert until(lambda: know(jobs, "tells", size), 60.0), jobs.status(name)
    first = {key: pod["metadata"]["uid"] for key, pod in jobs.pods("tells").items() if key[-1] in "01"}
    assert f"nodes {MINIMUM}:{MAXIMUM} at tells-worker-0.tells:23456" in jobs.cluster.kubectl("logs", "tells-worker-1")

    dear = jobs.submit(whole("dear", SLEEPS, 2, "high"))
    jobs.reaches(dear, "Running")
    assert until(lambda: know(jobs, "tells", size - 2), 60.0), jobs.status(name)
    assert jobs.status(lone)["evictions"] == 0 and jobs.phase(lone) == "Running"
    assert (jobs.phase(name), jobs.status(name)["failures"]) == ("Running", 0)

    generation = jobs.status(name)["world"]["generation"]
    jobs.delete(dear)
    assert until(lambda: know(jobs, "tells", size), 90.0), jobs.status(name)
    assert jobs.status(name)["world"]["generation"] > generation
    assert first == {key: pod["metadata"]["uid"] for key, pod in jobs.pods("tells").items() if key[-1] in "01"}
