"""Topology spread constraints that forbid."""

from __future__ import annotations

from typing import Any

import pytest
from filter_builders import HOST, ZONE, asked, cluster, evenly, pod_index, selector, told
from scheduler_builders import node, pod

from model.node import Taint, TaintEffect
from model.pod.affinity import Affinity, NodeTerm, SpreadConstraint
from model.selector import Operator, Requirement
from scheduler.core.filters.spread import SPREAD, UNLABELLED

TAINTED = (Taint("k", "v", TaintEffect.NO_SCHEDULE),)
NODES = [
    node("n1", labels={ZONE: "z1", HOST: "n1"}),
    node("n2", labels={ZONE: "z1", HOST: "n2"}),
    node("n3", labels={ZONE: "z2", HOST: "n3", "disk": "ssd"}),
    node("n4", labels={HOST: "n4"}),
    node("n5", labels={ZONE: "z3", HOST: "n5"}, taints=TAINTED),
]
A = pod("a", labels={"app": "a"})
NOT_Z3 = Affinity(nodes=(NodeTerm((Requirement(ZONE, Operator.NOT_IN, ("z3",)),)),))


def plain(*constraints: SpreadConstraint, **more: Any) -> Any:
    return pod("new", spread=constraints, **({"labels": {"app": "a"}} | more))


CASES: dict[str, tuple[list[Any], Any, list[str]]] = {
    "nobody yet: any domain": ([], plain(evenly()), ["", "", "", UNLABELLED, ""]),
    "one in a zone: the others first": (
        [(A, "n1")],
        plain(evenly()),
        [SPREAD, SPREAD, "", UNLABELLED, ""],
    ),
    "a larger skew allows more": ([(A, "n1")], plain(evenly(max_skew=2)), ["", "", "", UNLABELLED, ""]),
    "by host name": (
        [(A, "n1"), (A, "n4")],
        plain(evenly(HOST)),
        [SPREAD, "", "", SPREAD, ""],
    ),
    "a pod that its own constraint does not match adds nothing": (
        [(A, "n1")],
        plain(evenly(), labels={"app": "b"}),
        ["", "", "", UNLABELLED, ""],
    ),
    "one that only scores forbids nothing": ([(A, "n1")], plain(evenly(hard=False)), [""] * 5),
    "a pod that is going does not count": (
        [(pod("a", labels={"app": "a"}, deleting=True), "n1")],
        plain(evenly()),
        ["", "", "", UNLABELLED, ""],
    ),
    "another namespace does not count": (
        [(pod("a", namespace="other", labels={"app": "a"}), "n1")],
        plain(evenly()),
        ["", "", "", UNLABELLED, ""],
    ),
    "fewer domains than minDomains: the least is 0": (
        [(A, "n1"), (A, "n3"), (A, "n5")],
        plain(evenly(min_domains=4)),
        [SPREAD, SPREAD, SPREAD, UNLABELLED, SPREAD],
    ),
    "as many domains as minDomains": (
        [(A, "n1"), (A, "n3"), (A, "n5")],
        plain(evenly(min_domains=3)),
        ["", "", "", UNLABELLED, ""],
    ),
    "a domain its affinity excludes does not hold the others back": (
        [(A, "n1"), (A, "n3")],
        plain(evenly(), affinity=NOT_Z3),
        ["", "", "", UNLABELLED, ""],
    ),
    "nodeAffinityPolicy Ignore: it does": (
        [(A, "n1"), (A, "n3")],
        plain(evenly(honor_affinity=False), affinity=NOT_Z3),
        [SPREAD, SPREAD, SPREAD, UNLABELLED, ""],
    ),
    "nodeTaintsPolicy Ignore: a tainted domain holds the others back": (
        [(A, "n1"), (A, "n3")],
        plain(evenly()),
        [SPREAD, SPREAD, SPREAD, UNLABELLED, ""],
    ),
    "nodeTaintsPolicy Honor: it does not": (
        [(A, "n1"), (A, "n3")],
        plain(evenly(honor_taints=True)),
        ["", "", "", UNLABELLED, ""],
    ),
    "two constraints: nodes without both labels count for none": (
        [(A, "n3"), (A, "n4")],
        plain(evenly(ZONE, 2), evenly(HOST)),
        ["", "", SPREAD, UNLABELLED, ""],
    ),
    "an empty node without both labels holds nobody back": (
        [(A, "n1"), (A, "n2"), (A, "n3"), (A, "n5")],
        plain(evenly(ZONE, 9), evenly(HOST)),
        ["", "", "", UNLABELLED, ""],
    ),
    "no selector counts nobody": (
        [(A, "n1"), (A, "n1")],
        plain(SpreadConstraint(ZONE, 1, hard=True, selector=None)),
        ["", "", "", UNLABELLED, ""],
    ),
    "other pods than its own kind": (
        [(pod("b", labels={"app": "b"}), "n3")],
        plain(evenly(selector=selector(app="b"))),
        ["", "", "", UNLABELLED, ""],
    ),
}


@pytest.mark.parametrize(("residents", "wanted", "reasons"), CASES.values(), ids=CASES)
def test_where_one_more_keeps_the_spread_even(residents: list[Any], wanted: Any, reasons: list[str]) -> None:
    """The reason of each node, empty where the pod may go."""
    seen = cluster(*NODES)
    assert told(asked(seen, pod_index(seen, residents), wanted)) == reasons


def test_what_fewer_residents_help_against() -> None:
    """A skew goes away with residents, a missing label does not."""
    seen = cluster(*NODES)
    found = asked(seen, pod_index(seen, [(A, "n1")]), plain(evenly()))
    assert dict(zip(found.reasons, found.resolvable, strict=True)) == {UNLABELLED: False, SPREAD: True}
    assert found.hopeless.tolist() == [False, False, False, True, False]


def test_pods_that_count_themselves_are_placed_one_by_one() -> None:
    """Each placement moves the skew, unless the constraint is about others."""
    seen = cluster(*NODES)
    assert asked(seen, pod_index(seen, []), plain(evenly())).apart
    assert not asked(seen, pod_index(seen, []), plain(evenly(), labels={})).apart
