"""Volcano's Queue, field by field."""

from __future__ import annotations

from typing import Any

import pytest
from queue_objects import volcanos

from kube.dialects.queues.volcano import queue, unmet
from model.fault import ConfigurationFault
from model.queue import Queue, QueueOrder, QueuePreemption, QueueState, QuotaCell

CPU, MEMORY, GPU = ("", "cpu"), ("", "memory"), ("", "nvidia.com/gpu")
GI = 1 << 30
SOURCE = "Queue.scheduling.volcano.sh/research"


def test_a_queue_that_says_nothing() -> None:
    assert queue(volcanos()) == Queue("research", order=QueueOrder.BEST_EFFORT_FIFO, source=SOURCE)


def test_the_published_manifest() -> None:
    """No `deserved`: its share by weight, at least what is guaranteed."""
    found = queue(
        volcanos(
            "training-queue",
            weight=10,
            capability={"cpu": 512, "memory": "2Ti", "nvidia.com/gpu": 64},
            reclaimable=True,
            guarantee={"resource": {"cpu": 128, "memory": "512Gi", "nvidia.com/gpu": 16}},
        )
    )
    assert found is not None and found.weight == 10 and found.preemption == QueuePreemption()
    assert found.cells == {
        CPU: QuotaCell(128_000, None, 512_000),
        MEMORY: QuotaCell(512 * GI, None, 2048 * GI),
        GPU: QuotaCell(16, None, 64),
    }


FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "deserved": ({"deserved": {"cpu": "1500m"}}, {"cells": {CPU: QuotaCell(0, 1500, None)}}),
    "a parent": ({"parent": "org"}, {"parent": "org"}),
    "the root as a parent": ({"parent": "root"}, {"parent": ""}),
    "no reclaim": ({"reclaimable": False}, {"preemption": QueuePreemption(reclaimable=False)}),
    "strict order": ({"dequeueStrategy": "fifo"}, {"order": QueueOrder.STRICT_FIFO}),
    "the usual order": ({"dequeueStrategy": "traverse"}, {"order": QueueOrder.BEST_EFFORT_FIFO}),
    "closed": ({"status": {"state": "Closed"}}, {"state": QueueState.CLOSED}),
    "being closed": ({"status": {"state": "Closing"}}, {"state": QueueState.CLOSED}),
    "open": ({"status": {"state": "Open"}}, {"state": QueueState.OPEN}),
    "a status that cannot be read": ({"status": [1]}, {"state": QueueState.OPEN}),
    "an empty guarantee": ({"guarantee": {}}, {"cells": {}}),
}


@pytest.mark.parametrize("case", FIELDS)
def test_fields(case: str) -> None:
    spec, wanted = FIELDS[case]
    found = queue(volcanos(**spec))
    assert found is not None and {name: getattr(found, name) for name in wanted} == wanted


def test_the_root_is_no_queue() -> None:
    """It is the whole cluster."""
    assert queue(volcanos("root", capability={"cpu": 8})) is None


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no weight": ({"weight": 0}, "spec.weight: is 0 (write a whole number of 1 or more)"),
    "a weight that is none": ({"weight": True}, "spec.weight: is True (write a whole number of 1 or more)"),
    "no quantity": ({"capability": {"cpu": "x"}}, "spec.capability.cpu: 'x' is not a quantity"),
    "an amount that is a list": ({"deserved": {"cpu": []}}, "spec.deserved['cpu']: is a list (expected"),
    "guarantee above deserved": (
        {"guarantee": {"resource": {"cpu": 2}}, "deserved": {"cpu": 1}},
        "spec.guarantee.resource.cpu: is 2, more than spec.deserved 1 (lower it, or raise spec.deserved.cpu)",
    ),
    "deserved above capability": (
        {"deserved": {"cpu": 2}, "capability": {"cpu": 1}},
        "spec.deserved.cpu: is 2, more than spec.capability 1",
    ),
    "another strategy": ({"dequeueStrategy": "lifo"}, "spec.dequeueStrategy: is 'lifo' (write one of fifo, traverse)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_fields(case: str) -> None:
    spec, words = BAD[case]
    with pytest.raises(ConfigurationFault) as found:
        queue(volcanos(**spec))
    assert str(found.value).startswith(f"Queue.scheduling.volcano.sh research: {words}")


def test_what_nobody_acts_on() -> None:
    """Each field with what follows."""
    told = {"priority": 5, "affinity": {"nodeGroupAffinity": {}}, "extendClusters": [{"name": "a"}], "weight": 2}
    fields = [each.partition(":")[0] for each in unmet(volcanos(**told))]
    assert fields == ["spec.priority 5", "spec.affinity", "spec.extendClusters"]
    assert list(unmet(volcanos(weight=2, priority=0))) == []
