"""ScheduleAnyway spreading, with Kubernetes' own cases (podtopologyspread/scoring_test.go)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scheduler_builders import node, pod, snapshot

from model.node import Taint
from model.pod.affinity import Affinity, NodeTerm, SpreadConstraint
from model.selector import Operator, Requirement, Selector
from scheduler.core.scores.topology_spread import soft, spread_scores
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.podclass import PodTraits, class_of

HOST, ZONE = "kubernetes.io/hostname", "zone"
ALIKE = PodTraits("default", (("foo", ""),))
FOO = Selector((Requirement("foo", Operator.EXISTS),))


def spread(key: str = HOST, skew: int = 1, selector: Selector | None = FOO, **more: Any) -> SpreadConstraint:
    return SpreadConstraint(key, skew, more.pop("hard", False), selector, **more)


def zoned(name: str, zone: str) -> Any:
    return node(name, labels={HOST: name, ZONE: zone})


HOSTS = [node(name, labels={HOST: name}) for name in "abcd"]
ZONES = [zoned("a", "z1"), zoned("b", "z1"), zoned("x", "z2"), zoned("y", "z2")]

# nodes, pods on each, which nodes are feasible, constraints, scores
CASES: dict[str, tuple[list[Any], list[int], list[int], list[SpreadConstraint], list[int]]] = {
    "no pods there": (HOSTS[:2], [0, 0], [1, 1], [spread()], [100, 100]),
    "one candidate": (HOSTS[:2], [2, 1], [1, 0], [spread()], [100, 0]),
    "the same everywhere": (HOSTS[:2], [1, 1], [1, 1], [spread()], [100, 100]),
    "2/1/0/3": (HOSTS, [2, 1, 0, 3], [1, 1, 1, 1], [spread()], [20, 60, 100, 0]),
    "2/1/0/3 of no selector": (HOSTS, [2, 1, 0, 3], [1, 1, 1, 1], [spread(selector=None)], [100, 100, 100, 100]),
    "2/1/0/3 with skew 2": (HOSTS, [2, 1, 0, 3], [1, 1, 1, 1], [spread(skew=2)], [33, 66, 100, 16]),
    "4/3/2/1 with skew 3": (HOSTS, [4, 3, 2, 1], [1, 1, 1, 1], [spread(skew=3)], [44, 66, 77, 100]),
    "4/2/1/~3~": (HOSTS, [4, 2, 1, 3], [1, 1, 1, 0], [spread()], [33, 83, 100, 0]),
    "4/?2?/1/~3~": ([HOSTS[0], node("b"), *HOSTS[2:]], [4, 2, 1, 3], [1, 1, 1, 0], [spread()], [16, 0, 100, 0]),
    "4/2/1/~3~ by zone": (ZONES, [4, 2, 1, 3], [1, 1, 1, 0], [spread(ZONE)], [75, 75, 100, 0]),
    "2/~1~/2/~4~ by zone and node": (ZONES, [2, 1, 2, 4], [1, 0, 1, 0], [spread(ZONE), spread()], [100, 0, 63, 0]),
    "none feasible": (HOSTS[:2], [1, 2], [0, 0], [spread()], [0, 0]),
    "hard ones do not score": (HOSTS[:2], [2, 0], [1, 1], [spread(hard=True), spread(ZONE)], [0, 0]),
}  # fmt: skip


def pod_index_of(counts: list[int], pod_traits: PodTraits = ALIKE) -> PodIndex:
    pod_index = PodIndex(len(counts))
    for row, count in enumerate(counts):
        if count:
            pod_index.put(pod_traits, row, count)
    return pod_index


@pytest.mark.parametrize(("nodes", "counts", "feasible", "constraints", "wanted"), CASES.values(), ids=CASES.keys())
def test_spread(nodes: Any, counts: Any, feasible: Any, constraints: Any, wanted: list[int]) -> None:
    one = class_of(pod(labels={"foo": ""}, spread=tuple(constraints)))
    found = spread_scores(pod_index_of(counts), snapshot(*nodes).traits, one, np.array(feasible, bool))
    assert found.tolist() == wanted


OTHERS: dict[str, PodTraits] = {
    "in another namespace": PodTraits("other", (("foo", ""),)),
    "without the label": PodTraits("default", (("bar", ""),)),
    "being deleted": PodTraits("default", (("foo", ""),), terminating=True),
}


@pytest.mark.parametrize("pod_traits", OTHERS.values(), ids=OTHERS.keys())
def test_pods_that_do_not_count(pod_traits: PodTraits) -> None:
    one = class_of(pod(spread=(spread(),)))
    found = spread_scores(pod_index_of([3, 0], pod_traits), snapshot(*HOSTS[:2]).traits, one, np.ones(2, bool))
    assert found.tolist() == [100, 100]


INCLUSION: dict[str, tuple[dict[str, Any], list[int]]] = {
    "nodes the pod does not select do not count": ({}, [100, 100]),
    "unless told so": ({"honor_affinity": False}, [100, 0]),
    "nodes it does not tolerate count": ({"honor_affinity": False, "honor_taints": False}, [100, 0]),
    "unless told so, too": ({"honor_affinity": False, "honor_taints": True}, [100, 100]),
}


@pytest.mark.parametrize(("fields", "wanted"), INCLUSION.values(), ids=INCLUSION.keys())
def test_inclusion(fields: dict[str, Any], wanted: list[int]) -> None:
    """The third node, of the second zone, holds two pods; it is neither selected nor tolerated."""
    good = {"good": "yes"}
    nodes = [
        node("a", labels={ZONE: "z1"} | good),
        node("b", labels={ZONE: "z2"} | good),
        node("c", labels={ZONE: "z2"}, taints=(Taint("t"),)),
    ]
    affinity = Affinity((NodeTerm((Requirement("good", Operator.EXISTS),)),))
    one = class_of(pod(spread=(spread(ZONE, **fields),), affinity=affinity))
    found = spread_scores(pod_index_of([0, 0, 2]), snapshot(*nodes).traits, one, np.array([1, 1, 0], bool))
    assert found.tolist() == [*wanted, 0]


def test_soft() -> None:
    hard, scoring = spread(hard=True), spread(ZONE)
    assert soft(class_of(pod(spread=(hard, scoring)))) == (scoring,)
