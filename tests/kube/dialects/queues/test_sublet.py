"""Our Queue, field by field."""

from __future__ import annotations

from typing import Any

import pytest
from queue_objects import ours

from kube.dialects.queues.sublet import queue, unread
from model.fault import ConfigurationFault
from model.queue import Queue, QueueAdmission, QueueOrder, QueuePreemption, QueueState, QuotaCell

GPU, CPU, MEMORY, DISK = ("", "nvidia.com/gpu"), ("", "cpu"), ("", "memory"), ("", "ephemeral-storage")
GI = 1 << 30


def test_a_queue_that_says_nothing() -> None:
    """It is a root of weight 1 without quota; a victim has half a minute, as the definition writes it."""
    assert queue(ours()) == Queue("research", preemption=QueuePreemption(grace_seconds=30.0), source="Queue/research")


def test_all_fields() -> None:
    """Whatever the definition has."""
    found = queue(
        ours(
            parent="org",
            weight=3,
            quota={
                "hard": {"gpu": 64, "cpu": "512", "memory": "2Ti", "resources": {"ephemeral-storage": "1Gi"}},
                "soft": {"gpu": 32, "cpu": "256"},
                "guaranteed": {"gpu": 16, "cpu": 128},
            },
            borrowing={"allowedQueues": ["vision"], "maxBorrowRatio": 0.5, "limit": {"cpu": "100"}},
            lending={"limit": {"gpu": 4}},
            preemption={"allowPreemption": False, "allowPreemptFrom": ["vision"], "gracePeriod": "1m30s"},
            admissionControl={
                "maxJobs": 10,
                "maxGPUsPerJob": 8,
                "priorityRange": {"min": -5, "max": 9000},
                "namespaces": ["a", "b"],
            },
            order="StrictFIFO",
            state="Hold",
        )
    )
    assert found == Queue(
        "research",
        parent="org",
        weight=3,
        cells={
            GPU: QuotaCell(16, 32, 64, borrowing_limit=16, lending_limit=4),
            CPU: QuotaCell(128_000, 256_000, 512_000, borrowing_limit=100_000),
            MEMORY: QuotaCell(0, 2048 * GI, 2048 * GI, borrowing_limit=1024 * GI),
            DISK: QuotaCell(0, GI, GI, borrowing_limit=GI // 2),
        },
        state=QueueState.HOLD,
        order=QueueOrder.STRICT_FIFO,
        lenders=("vision",),
        preemption=QueuePreemption(False, ("vision",), 90.0),
        admission=QueueAdmission(10, 8, -5, 9000, ("a", "b")),
        source="Queue/research",
    )


CELLS: dict[str, tuple[dict[str, Any], QuotaCell]] = {
    "soft is as much as hard where it is not written": ({"quota": {"hard": {"gpu": 8}}}, QuotaCell(0, 8, 8)),
    "no bound without hard": ({"quota": {"soft": {"gpu": 8}}}, QuotaCell(0, 8, None)),
    "a share by weight without either": ({"quota": {"guaranteed": {"gpu": 8}}}, QuotaCell(8, None, None)),
    "none at all": ({"quota": {"hard": {"gpu": 0}}}, QuotaCell(0, 0, 0)),
    "by its whole name": ({"quota": {"hard": {"resources": {"nvidia.com/gpu": "8"}}}}, QuotaCell(0, 8, 8)),
    "nothing is borrowed": (
        {"quota": {"soft": {"gpu": 8}}, "borrowing": {"enabled": False, "maxBorrowRatio": 3}},
        QuotaCell(0, 8, None, borrowing_limit=0),
    ),
    "a tenth is a tenth": (
        {"quota": {"soft": {"gpu": 30}}, "borrowing": {"maxBorrowRatio": 0.1}},
        QuotaCell(0, 30, None, borrowing_limit=3),
    ),
    "a part of a device is none": (
        {"quota": {"soft": {"gpu": 5}}, "borrowing": {"maxBorrowRatio": 0.5}},
        QuotaCell(0, 5, None, borrowing_limit=2),
    ),
    "a ratio of a share says nothing": (
        {"quota": {"guaranteed": {"gpu": 5}}, "borrowing": {"maxBorrowRatio": 0.5}},
        QuotaCell(5),
    ),
    "the limit is tighter than the ratio": (
        {"quota": {"soft": {"gpu": 8}}, "borrowing": {"maxBorrowRatio": 1, "limit": {"gpu": 2}}},
        QuotaCell(0, 8, None, borrowing_limit=2),
    ),
    "the ratio is tighter than the limit": (
        {"quota": {"soft": {"gpu": 8}}, "borrowing": {"maxBorrowRatio": 0.25, "limit": {"gpu": 6}}},
        QuotaCell(0, 8, None, borrowing_limit=2),
    ),
    "a limit alone": ({"borrowing": {"limit": {"gpu": 2}}}, QuotaCell(borrowing_limit=2)),
    "what is lent alone": ({"lending": {"limit": {"gpu": 2}}}, QuotaCell(lending_limit=2)),
}


@pytest.mark.parametrize("case", CELLS)
def test_a_cell(case: str) -> None:
    spec, cell = CELLS[case]
    assert queue(ours(**spec)).cells == {GPU: cell}


def test_no_limit_is_zero() -> None:
    """Of jobs and of GPUs; null is as if it were not written."""
    told = {"maxJobs": 0, "maxGPUsPerJob": 0, "priorityRange": None}
    found = queue(ours(admissionControl=told, quota=None, borrowing=None, preemption=None, order=None))
    assert (found.admission, found.cells, found.order) == (QueueAdmission(), {}, QueueOrder.BACKFILL)


BAD: dict[str, tuple[Any, str]] = {
    "no object": ([1], "spec: is a list (expected an object)"),
    "no weight": ({"weight": 0}, "spec.weight: is 0 (expected a whole number >= 1)"),
    "a text for a weight": ({"weight": "2"}, "spec.weight: is '2' (expected a whole number)"),
    "no quantity": ({"quota": {"hard": {"cpu": "many"}}}, "spec.quota.hard.cpu: 'many' is not a quantity; write"),
    "less than nothing": ({"quota": {"soft": {"gpu": -1}}}, "spec.quota.soft.gpu: -1 is negative (write an amount"),
    "guaranteed above soft": (
        {"quota": {"guaranteed": {"cpu": 3}, "soft": {"cpu": "2500m"}}},
        "spec.quota.guaranteed.cpu: is 3, more than spec.quota.soft 2500m (lower it, or raise spec.quota.soft.cpu)",
    ),
    "guaranteed above hard": (
        {"quota": {"guaranteed": {"memory": "2Gi"}, "hard": {"memory": "1Gi"}}},
        "spec.quota.guaranteed.memory: is 2Gi, more than spec.quota.hard 1Gi",
    ),
    "soft above hard": (
        {"quota": {"soft": {"resources": {"a/b": 2}}, "hard": {"resources": {"a/b": 1}}}},
        "spec.quota.soft.a/b: is 2, more than spec.quota.hard 1",
    ),
    "one resource twice": (
        {"quota": {"hard": {"gpu": 1, "resources": {"nvidia.com/gpu": 2}}}},
        "spec.quota.hard.gpu: is written beside spec.quota.hard.resources[nvidia.com/gpu], which is the same (write one",
    ),
    "an order that is none": (
        {"order": "Fifo"},
        "spec.order: is 'Fifo' (write one of StrictFIFO, BestEffortFIFO, Back",
    ),
    "a state that is none": ({"state": "Ajar"}, "spec.state: is 'Ajar' (write one of Closed, Hold, Open)"),
    "a debt": (
        {"borrowing": {"maxBorrowRatio": -0.5}},
        "spec.borrowing.maxBorrowRatio: is -0.5 (expected a number >= 0",
    ),
    "no time": ({"preemption": {"gracePeriod": "soon"}}, "spec.preemption.gracePeriod: is 'soon' (expected a duration"),
    "an empty range": (
        {"admissionControl": {"priorityRange": {"min": 2, "max": 1}}},
        "spec.admissionControl.priorityRange: min 2 is more than max 1 (lower min, or raise max)",
    ),
    "a list of numbers": (
        {"borrowing": {"allowedQueues": [1]}},
        "spec.borrowing.allowedQueues[0]: is 1 (expected a text)",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_fields(case: str) -> None:
    """One sentence: object, field, what stands there, what to write."""
    spec, words = BAD[case]
    source = ours()
    source = type(source)(source.metadata, spec)
    with pytest.raises(ConfigurationFault) as found:
        queue(source)
    assert str(found.value).startswith(f"Queue research: {words}") and "\n" not in str(found.value)


UNREAD: dict[str, tuple[Any, tuple[str, ...]]] = {
    "all fields are known": (ours().spec, ()),
    "beside others": ({"wieght": 2, "weight": 2}, ("spec.wieght",)),
    "below": ({"quota": {"hard": {"gpus": 1}, "hards": {}}}, ("spec.quota.hard.gpus", "spec.quota.hards")),
    "names of resources are free": ({"quota": {"hard": {"resources": {"any/thing": 1}}}}, ()),
    "no object": ([1], ()),
}


@pytest.mark.parametrize("case", UNREAD)
def test_fields_that_there_are_none_of(case: str) -> None:
    spec, fields = UNREAD[case]
    source = ours()
    found = tuple(unread(type(source)(source.metadata, spec)))
    assert found == tuple(f"{field}: a Queue has no such field" for field in fields)
