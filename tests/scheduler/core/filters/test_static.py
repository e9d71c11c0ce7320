"""Filters about the node itself: required node affinity, and what is told of volumes."""

from __future__ import annotations

from typing import Any

import pytest
from filter_builders import ZONE, cluster, within
from scheduler_builders import node, pod

from model.node import Taint, TaintEffect
from model.pod.affinity import Affinity, NodeTerm
from model.pod.spec import Toleration, TolerationOperator, Tolerations
from model.selector import Operator, Requirement
from model.storage import Volume, VolumeClaim
from scheduler.core.filters.fit import fit_error, report
from scheduler.core.filters.static import SELECTOR, verdicts
from scheduler.core.filters.volumes import CONFLICT, NO_VOLUME, UNBOUND
from scheduler.core.snapshot.podclass import class_of

NODES = [
    node("n1", labels={ZONE: "z1", "disk": "ssd", "cores": "8"}),
    node("n2", labels={ZONE: "z2", "cores": "16"}),
    node("n3", labels={"disk": "hdd", "cores": "many"}),
]


def labelled(*requirements: Requirement) -> NodeTerm:
    return NodeTerm(requirements)


def named(*names: str, operator: Operator = Operator.IN) -> NodeTerm:
    return NodeTerm(names=(Requirement("metadata.name", operator, names),))


NODE_TERMS: dict[str, tuple[tuple[NodeTerm, ...] | None, str]] = {
    "no terms given": (None, "n1 n2 n3"),
    "an empty list matches none": ((), ""),
    "an empty term matches none": ((NodeTerm(),), ""),
    "In": ((labelled(within(ZONE, "z1", "z9")),), "n1"),
    "NotIn holds without the label": ((labelled(Requirement(ZONE, Operator.NOT_IN, ("z1",))),), "n2 n3"),
    "Exists": ((labelled(Requirement("disk", Operator.EXISTS)),), "n1 n3"),
    "DoesNotExist": ((labelled(Requirement("disk", Operator.DOES_NOT_EXIST)),), "n2"),
    "Gt reads numbers only": ((labelled(Requirement("cores", Operator.GT, ("8",))),), "n2"),
    "Lt": ((labelled(Requirement("cores", Operator.LT, ("9",))),), "n1"),
    "requirements of a term all hold": ((labelled(within("disk", "ssd", "hdd"), within(ZONE, "z1")),), "n1"),
    "terms are alternatives": ((labelled(within(ZONE, "z1")), labelled(within("disk", "hdd"))), "n1 n3"),
    "a node by name": ((named("n2"),), "n2"),
    "all but a node": ((named("n2", operator=Operator.NOT_IN),), "n1 n3"),
    "a name and a label": (
        (NodeTerm((within("disk", "ssd"),), (Requirement("metadata.name", Operator.IN, ("n1", "n2")),)),),
        "n1",
    ),
    "an unknown label": ((labelled(within("gpu", "a100")),), ""),
}


@pytest.mark.parametrize(("terms", "expected"), NODE_TERMS.values(), ids=NODE_TERMS)
def test_required_node_affinity(terms: tuple[NodeTerm, ...] | None, expected: str) -> None:
    """The nodes that are let through; the others are told as a mismatch."""
    seen = cluster(*NODES)
    found = verdicts(seen.traits, class_of(pod(affinity=Affinity(nodes=terms))).tolerance)
    assert " ".join(n for n, ok in zip(seen.names, found.admissible, strict=True) if ok) == expected
    assert set(found.reasons) <= {SELECTOR}


def test_the_selector_and_the_affinity_must_both_hold() -> None:
    """nodeSelector is a further condition."""
    seen = cluster(*NODES)
    wanted = pod(node_selector={ZONE: "z1"}, affinity=Affinity(nodes=(labelled(within("disk", "hdd")),)))
    assert not verdicts(seen.traits, class_of(wanted).tolerance).admissible.any()


def test_every_effect_and_the_first_untolerated_taint() -> None:
    """NoSchedule and NoExecute keep away, PreferNoSchedule does not; the first one in the way is named."""
    soft, first, second = (
        Taint("s", "1", TaintEffect.PREFER_NO_SCHEDULE),
        Taint("a", "1", TaintEffect.NO_EXECUTE),
        Taint("b", "2"),
    )
    seen = cluster(node("n1", taints=(soft, first, second)), node("n2", taints=(soft,)))
    tolerant = pod(tolerations=(Toleration("a", TolerationOperator.EXISTS, "", TaintEffect.NO_EXECUTE),))
    for wanted, taint in ((pod(), "{a: 1}"), (tolerant, "{b: 2}")):
        told = report(seen, seen.free, class_of(wanted))
        assert fit_error(told) == f"1/2 nodes are available: 1 node(s) had untolerated taint {taint}."


Z1 = (NodeTerm((within(ZONE, "z1"),)),)
VOLUMES = {"zonal": Volume("zonal", Z1), "local": Volume("local", (named("n2"),)), "anywhere": Volume("anywhere")}
CLAIMS: dict[str, tuple[dict[str, str], str]] = {
    "anywhere": ({"a": "anywhere"}, "3/3 nodes are available: ."),
    "in a zone": ({"a": "zonal"}, f"1/3 nodes are available: 2 {CONFLICT}."),
    "in a zone and on a node": ({"a": "zonal", "b": "local"}, f"0/3 nodes are available: 3 {CONFLICT}."),
    "bound to a volume that is gone": ({"a": "lost"}, f"0/3 nodes are available: 3 {NO_VOLUME}."),
    "one gone, one in a zone": ({"a": "lost", "b": "zonal"}, f"0/3 nodes are available: 1 {NO_VOLUME}, 2 {CONFLICT}."),
    "not bound": ({"a": "anywhere", "b": ""}, f"0/3 nodes are available: {UNBOUND}."),
}


@pytest.mark.parametrize(("bound", "text"), CLAIMS.values(), ids=CLAIMS)
def test_volumes_are_reached_from_their_nodes_only(bound: dict[str, str], text: str) -> None:
    """Claims by name and the volumes they are bound to."""
    claims = {f"default/{name}": VolumeClaim("default", name, volume) for name, volume in bound.items()}
    seen = cluster(*NODES, claims=claims, volumes=VOLUMES)
    assert fit_error(report(seen, seen.free, class_of(pod(claims=tuple(bound))))) == text


def test_a_claim_that_is_not_there() -> None:
    """No node is tried; the claim's name is told. Another namespace's claim of that name does not count."""
    seen = cluster(*NODES, claims={"other/data": VolumeClaim("other", "data", "anywhere")}, volumes=VOLUMES)
    told = report(seen, seen.free, class_of(pod(claims=("data",))))
    assert fit_error(told) == '0/3 nodes are available: persistentvolumeclaim "data" not found.'
    assert told.refused == ((('persistentvolumeclaim "data" not found',), 3),)


ORDER: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "cordon before taint": ({"unschedulable": True, "taints": (Taint("a"),)}, {}, "node(s) were unschedulable"),
    "taint before selector": (
        {"taints": (Taint("a"),)},
        {"node_selector": {"x": "y"}},
        "node(s) had untolerated taint {a: }",
    ),
    "selector before room": ({}, {"node_selector": {"x": "y"}, "batch_cpu": 9999}, SELECTOR),
    "room before volumes": ({}, {"claims": ("a",), "batch_cpu": 9999}, "Insufficient kubernetes.io/batch-cpu"),
}


@pytest.mark.parametrize(("has", "wants", "reason"), ORDER.values(), ids=ORDER)
def test_the_first_filter_in_the_way_is_told(has: dict[str, Any], wants: dict[str, Any], reason: str) -> None:
    """In kube-scheduler's order."""
    claims = {"default/a": VolumeClaim("default", "a", "zonal")}
    seen = cluster(node("n1", **has), claims=claims, volumes=VOLUMES)
    told = report(seen, seen.free, class_of(pod(**wants)))
    assert told.refused == (((reason,), 1),)


class _Key(str):
    """A key that counts how often it is compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        _Key.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_tolerations_are_looked_up() -> None:
    """A pod may have thousands, and nodes many kinds of taints."""
    told = Tolerations(Toleration(f"k{n}", TolerationOperator.EXISTS) for n in range(1000))
    _Key.times = 0
    assert not told.allow(Taint(_Key("dedicated"), "x")) and told.allow(Taint("k7"))
    assert _Key.times < 10
