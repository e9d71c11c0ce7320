"""One code per cause of a pending pod; the nearest obstacle counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from filter_builders import cluster, within
from scheduler_builders import node, pod, snapshot

from model.node import Taint, TaintEffect
from model.pod.affinity import NodeTerm
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY
from model.storage import Volume, VolumeClaim
from scheduler.core.filters.cause import CAUSES, cause
from scheduler.core.filters.obstacles import Obstacles
from scheduler.core.filters.podaffinity import AFFINITY, EXISTING
from scheduler.core.filters.ports import PORTS
from scheduler.core.filters.spread import SPREAD, UNLABELLED
from scheduler.core.snapshot.podclass import class_of

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
        [machine("a"), machine("b", labels={"disk": "ssd"}, taints=(Taint("gone", "", TaintEffect.NO_SCHEDULE),))],
        pod(node_selector={"disk": "ssd"}),
        Reason.UNSCHEDULABLE,
    ),
    "a node that takes no pods": (
        [machine(pods=0)],
        pod(batch_cpu=2000),
        Reason.REQUEST_TOO_LARGE,
    ),
    "every node is tainted": (
        [machine("a", taints=(Taint("gone"),)), machine("b", taints=(Taint("other"),))],
        pod(),
        Reason.TAINT_UNTOLERATED,
    ),
    "a claim that is not there": ([machine()], pod(claims=("data",)), Reason.CLAIM_NOT_BOUND),
    "no node at all": ([], pod(), Reason.UNSCHEDULABLE),
}


@pytest.mark.parametrize(("nodes", "wanted", "expected"), CASES.values(), ids=CASES)
def test_the_nearest_obstacle_is_the_cause(nodes: list[Any], wanted: Any, expected: Reason) -> None:
    """Filters first, then what could never fit, then what is not lent now."""
    seen = snapshot(*nodes)
    assert cause(seen, seen.free, class_of(wanted)) is expected
    assert expected in CAUSES


def test_a_native_shortage_is_not_blamed_on_batch() -> None:
    """Where other requests keep the pod away as well, lending more would not help it."""
    seen = snapshot(machine(batch_cpu=100), usage={"n1": {CPU: 8000}})
    wanted = pod(requests={BATCH_CPU: 500, CPU: 1000})
    assert cause(seen, seen.free, class_of(wanted)) is Reason.UNSCHEDULABLE


def refused(*reasons: str) -> Obstacles:
    """Row by row, empty where nothing is in the way."""
    words = tuple(dict.fromkeys(reason for reason in reasons if reason))
    return Obstacles(np.array([words.index(r) if r else -1 for r in reasons]), words, tuple(True for _ in words))


def busy(*rows: bool) -> tuple[tuple[Any, str], ...]:
    return ((np.array(rows), "node(s) cpu usage exceed threshold"),)


OTHERS: dict[str, tuple[Obstacles, tuple[tuple[Any, str], ...], int, Reason]] = {
    "a port everywhere": (refused(PORTS, PORTS), (), 500, Reason.PORT_IN_USE),
    "a port here, no room there": (refused(PORTS, ""), (), 2000, Reason.INSUFFICIENT_BATCH),
    "spread": (refused(SPREAD, SPREAD), (), 500, Reason.SPREAD_UNSATISFIED),
    "labels for spreading": (refused(UNLABELLED, UNLABELLED), (), 500, Reason.SPREAD_UNSATISFIED),
    "affinity": (refused(AFFINITY, AFFINITY), (), 500, Reason.AFFINITY_UNSATISFIED),
    "what is asked last is nearest": (refused(SPREAD, EXISTING), (), 500, Reason.AFFINITY_UNSATISFIED),
    "affinity, but no room either": (refused(AFFINITY, AFFINITY), (), 2000, Reason.INSUFFICIENT_BATCH),
    "load": (refused("", ""), busy(True, True), 500, Reason.NODE_TOO_BUSY),
    "load on what spread leaves": (refused(SPREAD, ""), busy(True, True), 500, Reason.NODE_TOO_BUSY),
    "load beside spread everywhere": (refused(SPREAD, SPREAD), busy(True, True), 500, Reason.SPREAD_UNSATISFIED),
}


@pytest.mark.parametrize(("others", "load", "batch_cpu", "expected"), OTHERS.values(), ids=OTHERS)
def test_who_else_is_there_counts_where_there_is_room(
    others: Obstacles, load: tuple[tuple[Any, str], ...], batch_cpu: int, expected: Reason
) -> None:
    """Filters in kube-scheduler's order, the load filter after them: the one that leaves no node."""
    seen = snapshot(machine("a"), machine("b"))
    assert cause(seen, seen.free, class_of(pod(batch_cpu=batch_cpu)), others, load) is expected


def test_a_filter_asked_once_more_keeps_its_code() -> None:
    """As without the nominated pods, after it was asked with them."""
    seen = snapshot(machine("a"))
    again = ((np.array([True]), SPREAD),)
    assert cause(seen, seen.free, class_of(pod()), refused(""), again) is Reason.SPREAD_UNSATISFIED


def test_a_volume_out_of_reach_of_all_roomy_nodes() -> None:
    """The node that reaches it is full."""
    volume = Volume("v", (NodeTerm((within("disk", "ssd"),)),))
    claims = {"default/data": VolumeClaim("default", "data", "v")}
    seen = cluster(machine("a", labels={"disk": "ssd"}), machine("b"), claims=claims, volumes={"v": volume})
    free = seen.free
    free[0] = 0
    assert cause(seen, free, class_of(pod(claims=("data",)))) is Reason.VOLUME_UNREACHABLE
