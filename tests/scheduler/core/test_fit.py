"""Filters and their words."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import node, pod, snapshot

from model.node import Taint
from model.pod import Toleration
from model.resources import BATCH_CPU
from scheduler.core.fit import counts, fit_error, report, tolerates
from scheduler.core.podclass import class_of

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
        pod(tolerations=(Toleration("a", "Equal", "b"),)),
        [2],
        "1/1 nodes are available: .",
    ),
    "PreferNoSchedule does not filter": (
        [node(taints=(Taint("a", "b", "PreferNoSchedule"),))],
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
        pod(tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),)),
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
    "everything": (Toleration(operator="Exists"), True),
    "key exists": (Toleration("a", "Exists"), True),
    "other key": (Toleration("b", "Exists"), False),
    "value differs": (Toleration("a", "Equal", "c"), False),
    "effect differs": (Toleration("a", "Exists", "", "NoExecute"), False),
    "no key, Equal": (Toleration("", "Equal", "b"), False),
}


@pytest.mark.parametrize("name", TOLERATIONS)
def test_tolerations(name: str) -> None:
    """Kubernetes' matching rules."""
    toleration, expected = TOLERATIONS[name]
    assert tolerates([toleration], TAINT) is expected


def test_usage_counts_against_room() -> None:
    """Requested amounts, more than allocatable included, leave what is left and never less than nothing."""
    cluster = snapshot(node(), node("n2"), usage={"n1": {BATCH_CPU: 600, "pods": 1}, "n2": {BATCH_CPU: 5000}})
    assert counts(cluster, cluster.free, class_of(pod(batch_cpu=400))).tolist() == [1, 0]
