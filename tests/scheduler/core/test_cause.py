"""One code per cause of a pending pod; the nearest obstacle counts."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import candidate, node, pod, snapshot

from model.node import Taint
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY
from scheduler.core.cause import CAUSES
from scheduler.core.place import Misfit, place

GIB = 1 << 30
BIG = {CPU: 8000, MEMORY: 16 * GIB}


def machine(name: str = "n1", *, batch_cpu: int = 1000, batch_memory: int = 4 * GIB, **more: Any) -> Any:
    return node(name, batch_cpu=batch_cpu, amounts={**BIG, BATCH_MEMORY: batch_memory}, **more)


CASES: dict[str, tuple[list[Any], Any, Reason]] = {
    "less is lent than asked for": ([machine()], pod(batch_cpu=2000), Reason.INSUFFICIENT_BATCH),
    "of two lent resources one is short": (
        [machine()],
        pod(requests={BATCH_CPU: 500, BATCH_MEMORY: 5 * GIB}),
        Reason.INSUFFICIENT_BATCH,
    ),
    "nothing is lent": ([machine(batch_cpu=0)], pod(), Reason.NO_BATCH_OFFERED),
    "no node knows the resource": (
        [node(amounts={BATCH_CPU: 0, **BIG})],
        pod(requests={BATCH_MEMORY: 1}),
        Reason.NO_BATCH_OFFERED,
    ),
    "more than the machine has": ([machine()], pod(batch_cpu=9000), Reason.REQUEST_TOO_LARGE),
    "memory beyond the machine": ([machine()], pod(requests={BATCH_MEMORY: 17 * GIB}), Reason.REQUEST_TOO_LARGE),
    "a native request beyond the machine": ([machine()], pod(requests={CPU: 9000}), Reason.REQUEST_TOO_LARGE),
    "no node has the label": ([machine()], pod(node_selector={"disk": "ssd"}), Reason.NODE_SELECTOR_MISMATCH),
    "the selected node is short": (
        [machine("a", labels={"disk": "ssd"}), machine("b", batch_cpu=4000)],
        pod(batch_cpu=2000, node_selector={"disk": "ssd"}),
        Reason.INSUFFICIENT_BATCH,
    ),
    "the selected node is too small, another is not": (
        [machine("a", labels={"disk": "ssd"}), node("b", batch_cpu=1000, amounts={CPU: 64_000})],
        pod(batch_cpu=9000, node_selector={"disk": "ssd"}),
        Reason.REQUEST_TOO_LARGE,
    ),
    "a taint beside the selector": (
        [machine("a"), machine("b", labels={"disk": "ssd"}, taints=(Taint("gone", "", "NoSchedule"),))],
        pod(node_selector={"disk": "ssd"}),
        Reason.UNSCHEDULABLE,
    ),
    "a node that takes no pods": (
        [machine(pods=0)],
        pod(batch_cpu=2000),
        Reason.REQUEST_TOO_LARGE,
    ),
    "no node at all": ([], pod(), Reason.UNSCHEDULABLE),
}


@pytest.mark.parametrize(("nodes", "wanted", "cause"), CASES.values(), ids=CASES)
def test_the_nearest_obstacle_is_the_cause(nodes: list[Any], wanted: Any, cause: Reason) -> None:
    """Filters first, then what could never fit, then what is not lent now."""
    cluster = snapshot(*nodes)
    outcome = place(cluster, cluster.free, candidate([wanted]))
    assert isinstance(outcome, Misfit)
    assert outcome.cause is cause
    assert outcome.cause in CAUSES


def test_a_native_shortage_is_not_blamed_on_batch() -> None:
    """Where other requests keep the pod away as well, lending more would not help it."""
    cluster = snapshot(machine(batch_cpu=100), usage={"n1": {CPU: 8000}})
    outcome = place(cluster, cluster.free, candidate([pod(requests={BATCH_CPU: 500, CPU: 1000})]))
    assert isinstance(outcome, Misfit)
    assert outcome.cause is Reason.UNSCHEDULABLE
