"""Statuses of ClusterQueues and LocalQueues by how their queues stand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.dialects.queues.kueue_statuses import (
    active,
    cluster_queue_status,
    consumed_status,
    local_active,
    local_queue_status,
    read_consumed,
)
from model.flavor.resource_flavor import SubmissionQueue, SubmissionStanding
from model.queue import CellStanding, FlavorGroup, Queue, QueueStanding, QueueState

GPU = "nvidia.com/gpu"
QUEUE = Queue("team", flavor_groups=(FlavorGroup((GPU,), ("a100", "v100")),))
STANDING = QueueStanding(
    QUEUE,
    cells={("a100", GPU): CellStanding(nominal=8, used=10, nominated=2)},
    pending_jobs=5,
    running_jobs=3,
    nominated_jobs=1,
    borrowed_share=250,
)


def usage(total: str, borrowed: str) -> list[dict[str, Any]]:
    nothing = {"name": GPU, "total": "0", "borrowed": "0"}
    return [
        {"name": "a100", "resources": [{"name": GPU, "total": total, "borrowed": borrowed}]},
        {"name": "v100", "resources": [nothing]},
    ]


def test_a_cluster_queue() -> None:
    """Every flavour and resource in the order of the queue; what is kept for a job counts as reserved."""
    assert cluster_queue_status(STANDING, fair=False) == {
        "pendingWorkloads": 4,
        "reservingWorkloads": 4,
        "admittedWorkloads": 3,
        "flavorsReservation": usage("12", "4"),
        "flavorsUsage": usage("10", "2"),
    }
    assert cluster_queue_status(STANDING, fair=True)["fairSharing"] == {"weightedShare": 250}


ACTIVE: dict[str, tuple[QueueStanding, tuple[bool, str]]] = {
    "it takes work": (STANDING, (True, "Ready")),
    "on hold": (QueueStanding(msgspec.structs.replace(QUEUE, state=QueueState.HOLD)), (False, "Stopped")),
    "drained": (QueueStanding(msgspec.structs.replace(QUEUE, state=QueueState.DRAIN)), (False, "Stopped")),
    "without a flavour": (QueueStanding(msgspec.structs.replace(QUEUE, inactive="no a100")), (False, "FlavorNotFound")),
    "in a circle": (QueueStanding(QUEUE, problem="a circle"), (False, "Unknown")),
}


@pytest.mark.parametrize(("standing", "wanted"), ACTIVE.values(), ids=ACTIVE)
def test_whether_it_is_active(standing: QueueStanding, wanted: tuple[bool, str]) -> None:
    assert active(standing)[:2] == wanted


LOCAL = SubmissionStanding(SubmissionQueue("ns", "team", "team"), 2, 1, 1, {("a100", GPU): 4}, {("a100", GPU): 6})


def test_a_local_queue() -> None:
    found = local_queue_status(LOCAL, QUEUE.flavor_groups)
    assert (found["pendingWorkloads"], found["reservingWorkloads"], found["admittedWorkloads"]) == (2, 2, 1)
    assert found["flavorsUsage"][0] == {"name": "a100", "resources": [{"name": GPU, "total": "4"}]}
    assert found["flavorsReservation"][0] == {"name": "a100", "resources": [{"name": GPU, "total": "6"}]}
    assert found["flavorUsage"] == found["flavorsUsage"]


HELD = msgspec.structs.replace(LOCAL, queue=SubmissionQueue("ns", "team", "team", QueueState.HOLD))
LOCALS: dict[str, tuple[SubmissionStanding, Queue | None, bool, tuple[bool, str]]] = {
    "open": (LOCAL, QUEUE, True, (True, "Ready")),
    "on hold": (HELD, QUEUE, True, (False, "Stopped")),
    "to nowhere": (LOCAL, None, False, (False, "ClusterQueueDoesNotExist")),
    "to one that takes nothing": (LOCAL, QUEUE, False, (False, "ClusterQueueIsInactive")),
}


@pytest.mark.parametrize(("standing", "queue", "taken", "wanted"), LOCALS.values(), ids=LOCALS)
def test_whether_a_local_queue_is(
    standing: SubmissionStanding, queue: Queue | None, taken: bool, wanted: tuple[bool, str]
) -> None:
    assert local_active(standing, queue, taken)[:2] == wanted


def test_use_over_time_comes_back_as_it_was_written() -> None:
    """In whole units, and not at every look."""
    written = consumed_status(None, {GPU: 3, "cpu": 1500}, 1000.0, "1970-01-01T00:16:40Z")
    own = written["fairSharing"]["admissionFairSharingStatus"]
    assert own == {"consumedResources": {GPU: "3", "cpu": "1500m"}, "lastUpdate": "1970-01-01T00:16:40Z"}
    assert read_consumed(written) == ({GPU: 3, "cpu": 1500}, 1000.0)
    assert consumed_status(written, {GPU: 4, "cpu": 1600}, 1299.0, "") == {}
    after = consumed_status(written, {GPU: 4}, 1300.0, "")["fairSharing"]["admissionFairSharingStatus"]
    assert after["consumedResources"] == {GPU: "4", "cpu": "0"}


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"fairSharing": 7},
        {"fairSharing": {"admissionFairSharingStatus": {"consumedResources": {"cpu": "x"}}}},
    ],
)
def test_use_over_time_that_cannot_be_read(told: Any) -> None:
    """Counts as none."""
    assert read_consumed(told) == ({}, 0.0)
