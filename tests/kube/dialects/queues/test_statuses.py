"""Statuses of queues' objects: what each API says, and a patch of what differs alone."""

from __future__ import annotations

from typing import Any

import pytest

from kube.dialects.queues import reading, statuses
from kube.objects import ElasticQuota, Metadata, Queue, VolcanoQueue
from model import queue as model
from model.queue import CellStanding, QueueStanding, QueueState, QuotaCell

NOW = "2026-01-02T03:04:05Z"
GPU = ("", "nvidia.com/gpu")
CELLS = {
    ("", "cpu"): CellStanding(used=1500, borrowed=500, share=1000),
    ("", "memory"): CellStanding(used=2 << 30, lent=1 << 30, share=4 << 30),
    GPU: CellStanding(used=8, share=8),
    ("", "kubernetes.io/batch-cpu"): CellStanding(),
    ("", "pods"): CellStanding(),
}


def standing(**more: Any) -> QueueStanding:
    own = model.Queue(
        "team", cells={("", "kubernetes.io/batch-cpu"): QuotaCell(nominal=5)}, state=more.pop("state", QueueState.OPEN)
    )
    return QueueStanding(own, cells=CELLS, pending_jobs=3, running_jobs=2, **more)


def ours(status: Any = None) -> reading.QueueObject:
    return reading.read(Queue(Metadata(name="team"), {}, status))


def test_our_queue() -> None:
    """Short names for three resources, the rest by their whole names; what the queue names is told though it is 0."""
    found = statuses.wanted(ours(), standing(), NOW)
    assert found["used"] == {"gpu": 8, "cpu": "1500m", "memory": "2Gi", "resources": {"kubernetes.io/batch-cpu": "0"}}
    assert found["borrowed"] == {"cpu": "500m", "resources": {"kubernetes.io/batch-cpu": "0"}}
    assert found["lent"] == {"memory": "1Gi", "resources": {"kubernetes.io/batch-cpu": "0"}}
    assert (found["pendingJobs"], found["runningJobs"]) == (3, 2)
    assert found["conditions"] == [
        {"type": "Active", "status": "True", "reason": "Ready", "message": "it takes work", "lastTransitionTime": NOW}
    ]


@pytest.mark.parametrize(
    ("more", "status", "reason"),
    [
        ({}, "True", "Ready"),
        ({"children": ("a", "b")}, "True", "HasChildren"),
        ({"state": QueueState.CLOSED}, "False", "Closed"),
        ({"state": QueueState.HOLD}, "False", "OnHold"),
        ({"problem": "its parent does not exist"}, "False", "Invalid"),
    ],
)
def test_whether_it_takes_work(more: dict[str, Any], status: str, reason: str) -> None:
    """As a condition."""
    (found,) = statuses.wanted(ours(), standing(**more), NOW)["conditions"]
    assert (found["status"], found["reason"]) == (status, reason)


def test_conditions_of_others_and_the_time_stay() -> None:
    """While the status is the same the time of its last transition is, too."""
    other = {"type": "Audited", "status": "True"}
    before = {"type": "Active", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    found = statuses.wanted(ours({"conditions": [before, other]}), standing(), NOW)["conditions"]
    assert found[0] == other and found[1]["lastTransitionTime"] == "2020-01-01T00:00:00Z"
    closed = statuses.wanted(ours({"conditions": [before]}), standing(state=QueueState.CLOSED), NOW)["conditions"]
    assert closed[0]["lastTransitionTime"] == NOW


def test_volcanos_queue() -> None:
    """The state that is there stays; counts and what is allocated by whole names."""
    source = reading.read(VolcanoQueue(Metadata(name="team"), {}, {"state": "Closing"}))
    found = statuses.wanted(source, standing(), NOW)
    assert (found["state"], found["pending"], found["running"]) == ("Closing", 3, 2)
    assert found["allocated"]["nvidia.com/gpu"] == "8"
    fresh = statuses.wanted(reading.read(VolcanoQueue(Metadata(name="team"))), standing(), NOW)
    assert fresh["state"] == "Open"


def test_elastic_quota() -> None:
    """What is used."""
    source = reading.read(ElasticQuota(Metadata(name="team", namespace="ml"), {}))
    assert statuses.wanted(source, standing(), NOW)["used"]["cpu"] == "1500m"


def test_a_patch_has_what_differs() -> None:
    """And takes out amounts that are no more; a status that says it all needs none."""
    wanted = {"used": {"cpu": "1"}, "pendingJobs": 1}
    assert statuses.patch(ours({"used": {"cpu": "1"}, "pendingJobs": 1, "other": 5}), wanted) is None
    assert statuses.patch(ours({"used": {"cpu": "2", "gpu": 1}, "pendingJobs": 1}), wanted) == {
        "status": {"used": {"cpu": "1", "gpu": None}}
    }
    assert statuses.patch(ours("nonsense"), wanted) == {"status": wanted}
