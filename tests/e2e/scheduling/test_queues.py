"""Queues through real kubectl: Volcano's as it is written elsewhere, and trees that are refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import until
from tests.e2e.scheduling.conftest import Scene
from tests.e2e.scheduling.manifests import Manifest, listed, pod

pytestmark = pytest.mark.slow

DEFINITIONS = ("deploy/crds/optional/sublet", "deploy/crds/optional/volcano")
VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: training-queue}
spec:
  weight: 10
  capability: {cpu: "512", memory: 2Ti, nvidia.com/gpu: "64"}
  reclaimable: true
  guarantee:
    resource: {cpu: "128", memory: 512Gi, nvidia.com/gpu: "16"}
"""
HERE = {"pool": "preemption"}


def queue(name: str, parent: str = "", **quota: Manifest) -> Manifest:
    """One of ours."""
    spec = {"quota": quota, **({"parent": parent} if parent else {})}
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


TREE = listed(
    queue("ai", guaranteed={"cpu": "8"}, hard={"cpu": "16"}),
    queue("study", "ai", guaranteed={"cpu": "6"}),
)


@pytest.fixture
def queues(scene: Scene) -> Iterator[Scene]:
    """With the definitions, and without a queue afterwards."""
    for folder in DEFINITIONS:
        scene.cluster.kubectl("apply", "-k", folder)
    yield scene
    scene.clean()
    left = ("delete", "queues.sublet.dev,queues.scheduling.volcano.sh", "--all")
    assert until(lambda: scene.cluster.run(*left).returncode == 0)


def written(scene: Scene, text: str, kind: str, name: str) -> None:
    """Applied, and the scheduler told its state of it."""
    scene.apply(text)
    told = ("get", kind, name, "-o", "jsonpath={.status}")
    assert until(lambda: scene.cluster.kubectl(*told), 60.0)


def test_volcanos_queue_as_it_is_written(queues: Scene) -> None:
    """It says nothing of what it deserves, and governs its work all the same."""
    written(queues, VOLCANO, "queues.scheduling.volcano.sh", "training-queue")
    queues.apply(listed(pod("train", labels={"volcano.sh/queue-name": "training-queue"}, nodeSelector=HERE)))
    assert queues.placed("train", 1)
    rows = [row.split() for row in queues.cluster.sublet("explain", "queue", "training-queue").stdout.splitlines()]
    cells = {row[0]: row[1:4] for row in rows if row}
    assert cells["cpu"] == ["128", "-", "512"] and cells["nvidia.com/gpu"] == ["16", "-", "64"], rows
    assert cells["memory"] == ["512Gi", "-", "2Ti"], rows


REFUSED = {
    "no parent": (queue("lone", "nobody"), "Queue lone: spec.parent is nobody, and there is no queue of that name"),
    "guarantees above the parent's": (
        queue("more", "ai", guaranteed={"cpu": "3"}),
        "Queue more: spec.quota.guaranteed.cpu is 3: the queues of ai would have 9 together, more than its 8; lower it",
    ),
    "a maximum above the parent's": (
        queue("more", "ai", hard={"cpu": "17"}),
        "Queue more: spec.quota.hard.cpu is 17, more than the 16 of ai above it",
    ),
    "a circle": (
        queue("ai", "study", guaranteed={"cpu": "8"}, hard={"cpu": "16"}),
        "Queue ai: spec.parent study makes a circle, ai < study < ai",
    ),
}


def test_trees_that_do_not_add_up(queues: Scene) -> None:
    """Nothing of them is stored, and the sentence has the numbers."""
    written(queues, TREE, "queues.sublet.dev", "study")
    for name, (manifest, sentence) in REFUSED.items():
        assert sentence in queues.cluster.apply(json.dumps(manifest), check=False).stderr, name
    found = queues.cluster.kubectl("get", "queues.sublet.dev", "-o", "jsonpath={.items[*].metadata.name}")
    assert found.split() == ["ai", "study"]


def test_no_queue_goes_from_under_its_work(queues: Scene) -> None:
    """Neither with queues below it, nor with jobs; without them it goes."""
    written(queues, TREE, "queues.sublet.dev", "study")
    queues.apply(listed(pod("essay", labels={"sublet.dev/queue": "study"}, nodeSelector=HERE)))
    # Admission goes by the counts in the status, which are compared every five seconds.
    running = ("get", "queues.sublet.dev", "study", "-o", "jsonpath={.status.runningJobs}")
    assert until(lambda: queues.cluster.kubectl(*running) == "1")
    above, own = (queues.cluster.run("delete", "queues.sublet.dev", name) for name in ("ai", "study"))
    assert "Queue ai: queue study is part of it; delete or move that first" in above.stderr
    assert "Queue study: 1 job that runs in it; delete it first, or wait for its end" in own.stderr
    queues.clean()
    assert until(lambda: queues.cluster.run("delete", "queues.sublet.dev", "study").returncode == 0)
