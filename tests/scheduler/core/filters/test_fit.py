"""Filters and their words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scheduler_builders import node, pod, snapshot

from model.node import Taint, TaintEffect
from model.pod.spec import Toleration, TolerationOperator, Tolerations
from model.resources import BATCH_CPU
from scheduler.core.filters.fit import after_room, before_room, counts, fit_error, report, too_small
from scheduler.core.filters.obstacles import Obstacles
from scheduler.core.filters.ports import PORTS
from scheduler.core.filters.spread import SPREAD
from scheduler.core.snapshot.podclass import class_of

TAINT = Taint("a", "b")
CASES: dict[str, tuple[list[Any], Any, list[int], str]] = {
    "room for two": ([node(batch_cpu=1000)], pod(), [2], "1/1 nodes are available: ."),
    "no room": ([node(batch_cpu=499)], pod(), [0], f"0/1 nodes are available: 1 Insufficient {BATCH_CPU}."),
    "resource no node lists": (
        [node()],
        pod(requests={"nvidia.com/gpu": 1}),
        [0],
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
    ),
    **{
        f"{name}, a device that a node lists": (
            [node("n1", amounts={name: 100}), node("n2", amounts={"cpu": 2000})],
            pod(requests={name: 50}),
            [2, 0],
            f"1/2 nodes are available: 1 Insufficient {name}.",
        )
        for name in ("koordinator.sh/gpu-core", "kubernetes.io/gpu", "kubernetes.io/rdma", "kubernetes.io/fpga")
    },
    "resource one node lists": (
        [node("n1"), node("n2", amounts={"cpu": 2000})],
        pod(requests={"cpu": 1000}),
        [0, 2],
        "1/2 nodes are available: 1 Insufficient cpu.",
    ),
    "node without a pods entry": (
        [node(pods=0)],
        pod(),
        [0],
        "0/1 nodes are available: 1 Too many pods.",
    ),
    "several resources of one node": (
        [node(batch_cpu=1, pods=0)],
        pod(),
        [0],
        f"0/1 nodes are available: 1 Insufficient {BATCH_CPU}, 1 Too many pods.",
    ),
    "selector": (
        [node(labels={"zone": "a"}), node("n2", labels={"zone": "b"})],
        pod(node_selector={"zone": "b"}),
        [0, 2],
        "1/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
    ),
    "taint": (
        [node(taints=(TAINT,))],
        pod(),
        [0],
        "0/1 nodes are available: 1 node(s) had untolerated taint {a: b}.",
    ),
    "tolerated taint": (
        [node(taints=(TAINT,))],
        pod(tolerations=(Toleration("a", TolerationOperator.EQUAL, "b"),)),
        [2],
        "1/1 nodes are available: .",
    ),
    "PreferNoSchedule does not filter": (
        [node(taints=(Taint("a", "b", TaintEffect.PREFER_NO_SCHEDULE),))],
        pod(),
        [2],
        "1/1 nodes are available: .",
    ),
    "cordoned, said before its taint": (
        [node(unschedulable=True, taints=(Taint("node.kubernetes.io/unschedulable"),))],
        pod(),
        [0],
        "0/1 nodes are available: 1 node(s) were unschedulable.",
    ),
    "cordon tolerated": (
        [node(unschedulable=True)],
        pod(tolerations=(Toleration("node.kubernetes.io/unschedulable", TolerationOperator.EXISTS),)),
        [2],
        "1/1 nodes are available: .",
    ),
    "reasons sorted as strings": (
        [node(f"n{i}", batch_cpu=0) for i in range(2)] + [node(f"t{i}", taints=(TAINT,)) for i in range(3)],
        pod(),
        [0] * 5,
        f"0/5 nodes are available: 2 Insufficient {BATCH_CPU}, 3 node(s) had untolerated taint {{a: b}}.",
    ),
    "amounts beyond int64": (
        [node(amounts={"memory": 1 << 70})],
        pod(requests={"memory": 1 << 80}),
        [0],
        "0/1 nodes are available: 1 Insufficient memory.",
    ),
    "the first of thousands that no node lists": (
        [node()],
        pod(requests={f"example.com/{index:04}": 1 for index in range(5000)}),
        [0],
        f"0/1 nodes are available: {', '.join(f'1 Insufficient example.com/{index:04}' for index in range(16))}.",
    ),
    "the last of a hundred": (
        [node(amounts={f"example.com/{index:02}": 1 for index in range(100)}, batch_cpu=500)],
        pod(requests={f"example.com/{index:02}": 1 + index // 99 for index in range(100)}),
        [0],
        "0/1 nodes are available: 1 Insufficient example.com/99.",
    ),
    "no nodes": ([], pod(), [], "no nodes available to schedule pods"),
}


@pytest.mark.parametrize("name", CASES)
def test_counts_and_words(name: str) -> None:
    """How many pods fit on each node, and kube-scheduler's text for those that take none."""
    nodes, wanted, fitting, text = CASES[name]
    cluster = snapshot(*nodes)
    assert counts(cluster, cluster.free, class_of(wanted)).tolist() == fitting
    told = report(cluster, cluster.free, class_of(wanted))
    assert fit_error(told) == text
    assert told.feasible == sum(number > 0 for number in fitting)
    assert told.nodes - sum(number for _, number in told.refused) == told.feasible


TOLERATIONS: dict[str, tuple[Toleration, bool]] = {
    "everything": (Toleration(operator=TolerationOperator.EXISTS), True),
    "key exists": (Toleration("a", TolerationOperator.EXISTS), True),
    "other key": (Toleration("b", TolerationOperator.EXISTS), False),
    "value differs": (Toleration("a", TolerationOperator.EQUAL, "c"), False),
    "effect differs": (Toleration("a", TolerationOperator.EXISTS, "", TaintEffect.NO_EXECUTE), False),
    "no key, Equal": (Toleration("", TolerationOperator.EQUAL, "b"), False),
}


@pytest.mark.parametrize("name", TOLERATIONS)
def test_tolerations(name: str) -> None:
    """Kubernetes' matching rules."""
    toleration, expected = TOLERATIONS[name]
    assert Tolerations([toleration]).allow(TAINT) is expected


def test_usage_counts_against_room() -> None:
    """Requested amounts, more than allocatable included, leave what is left and never less than nothing."""
    cluster = snapshot(node(), node("n2"), usage={"n1": {BATCH_CPU: 600, "pods": 1}, "n2": {BATCH_CPU: 5000}})
    assert counts(cluster, cluster.free, class_of(pod(batch_cpu=400))).tolist() == [1, 0]


def test_what_is_not_asked_for_is_never_short() -> None:
    """A node that shrank below its use takes a pod that wants something else."""
    cluster = snapshot(node(amounts={"cpu": 1000}), usage={"n1": {"cpu": 5000}})
    told = report(cluster, cluster.free, class_of(pod(requests={BATCH_CPU: 500, "cpu": 0})))
    assert told.feasible == 1
    assert counts(cluster, cluster.free, class_of(pod(requests={BATCH_CPU: 500, "cpu": 0}))).tolist() == [2]


def test_nodes_too_small_when_empty() -> None:
    """By allocatable alone, whatever is used; a resource that no node lists is too much for all."""
    cluster = snapshot(node(batch_cpu=499), node("n2", batch_cpu=500), usage={"n2": {BATCH_CPU: 500}})
    assert too_small(cluster, class_of(pod())).tolist() == [True, False]
    assert too_small(cluster, class_of(pod(requests={"nvidia.com/gpu": 1}))).all()


OBSTACLES = Obstacles(np.array([0, 1, -1, -1]), (PORTS, SPREAD), (True, True), most=np.array([1, 1, 1, 1]), apart=True)
BUSY = "node(s) cpu usage exceed threshold"


@pytest.mark.parametrize(
    ("batch_cpu", "fitting", "text"),
    [
        (500, [0, 0, 0, 1], f"1/4 nodes are available: 1 {BUSY}, 1 {PORTS}, 1 {SPREAD}."),
        (2000, [0, 0, 0, 0], f"0/4 nodes are available: 1 {PORTS}, 3 Insufficient {BATCH_CPU}."),
    ],
)
def test_what_is_asked_after_room_is_told_of_roomy_nodes_only(batch_cpu: int, fitting: list[int], text: str) -> None:
    """Ports before room, spread after it, the load filter last; a limit holds beside room."""
    cluster = snapshot(*(node(f"n{i}") for i in range(4)))
    busy = ((np.array([True, True, True, False]), BUSY),)
    wanted = class_of(pod(batch_cpu=batch_cpu))
    assert counts(cluster, cluster.free, wanted, OBSTACLES, busy).tolist() == fitting
    assert fit_error(report(cluster, cluster.free, wanted, OBSTACLES, busy)) == text


def test_ports_are_asked_before_room_and_others_after_it() -> None:
    """Neither twice."""
    nodes = snapshot(*(node(f"n{number}", batch_cpu=1000) for number in range(4)))
    asked = (before_room, after_room)
    before, after = ({word: rows.tolist() for rows, word in ask(nodes, class_of(pod()), OBSTACLES)} for ask in asked)
    assert PORTS in before and SPREAD not in before
    assert SPREAD in after and PORTS not in after
