"""Which PodGroups go together below composite groups."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

import msgspec
import pytest

from kube.dialects.gangs.nested import Nesting, above_of, composite, nestings, with_nesting
from kube.objects import CompositePodGroup
from model.workload import GangSpec, TopologyLevel

RACK = (TopologyLevel("rack", required=True),)


def group(name: str, minimum: int = 0, parent: str = "", **spec: Any) -> CompositePodGroup:
    """A gang of `minimum` groups, or basic."""
    policy = {"gang": {"minGroupCount": minimum}} if minimum else {"basic": {}}
    told = {"schedulingPolicy": policy, "parentCompositePodGroupName": parent or None, **spec}
    return msgspec.convert({"metadata": {"name": name, "namespace": "ns"}, "spec": told}, CompositePodGroup)


def found(parents: Mapping[str, str], *composites: CompositePodGroup) -> Mapping[str, Nesting]:
    """By name."""
    above = {f"ns/{name}": f"ns/{parent}" for name, parent in parents.items()}
    read = {each.key: each for each in map(composite, composites)}
    return {key.removeprefix("ns/"): each for key, each in nestings(above, read).items()}


REPLICAS = {"a-driver": "a", "a-workers": "a", "b-driver": "b", "b-workers": "b"}
A, B = group("a", 2, "root"), group("b", 2, "root")
EACH = {"a-driver": "a-driver a-workers", "b-driver": "b-driver b-workers"}
ALL = " ".join(sorted(REPLICAS))
# PodGroups with their parents, composites -> for some PodGroups all that go together
TREES: dict[str, tuple[Mapping[str, str], tuple[CompositePodGroup, ...], Mapping[str, str]]] = {
    "a gang of two groups": ({"x": "c", "y": "c"}, (group("c", 2),), {"x": "x y", "y": "x y"}),
    "one of three is enough": ({"x": "c", "y": "c", "z": "c"}, (group("c", 1),), {"x": "", "y": "", "z": ""}),
    "two of three are": ({"x": "c", "y": "c", "z": "c"}, (group("c", 2),), {"x": "x y", "z": ""}),
    "basic": ({"x": "c", "y": "c"}, (group("c"),), {"x": "", "y": ""}),
    "replicas of which each is a gang": (REPLICAS, (group("root"), A, B), EACH),
    "all replicas at once": (REPLICAS, (group("root", 2), A, B), {"a-driver": ALL, "b-workers": ALL}),
    "one replica at least": (REPLICAS, (group("root", 1), A, B), EACH),
    "a basic one counts by its first": (
        {"x": "c", "y": "c", "z": "root"},
        (group("root", 2), group("c", 0, "root")),
        {"x": "", "y": "", "z": "x z"},
    ),
}


@pytest.mark.parametrize(("parents", "composites", "expected"), TREES.values(), ids=TREES)
def test_which_groups_go_together(
    parents: Mapping[str, str], composites: tuple[CompositePodGroup, ...], expected: Mapping[str, str]
) -> None:
    """As many as the composites above them want at once, and no others."""
    told = found(parents, *composites)
    assert {name: told[name].groups for name in expected} == {
        name: tuple(f"ns/{each}" for each in together.split()) for name, together in expected.items()
    }
    assert not any(each.problem for each in told.values())


CHAIN = [group(f"c{level}", 1, f"c{level + 1}") for level in range(4)]
PROBLEMS: dict[str, tuple[Mapping[str, str], tuple[CompositePodGroup, ...], str]] = {
    "no such composite": (
        {"x": "c"},
        (),
        "PodGroup ns/x: spec.parentCompositePodGroupName leads to ns/c, and there is no such CompositePodGroup, or the "
        "scheduler may not list and watch compositepodgroups.scheduling.k8s.io",
    ),
    "too few groups": (
        {"x": "c"},
        (group("c", 2),),
        "CompositePodGroup ns/c needs 2 groups at once, and 1 name it as their parent",
    ),
    "a circle": ({"x": "a"}, (group("a", 1, "b"), group("b", 1, "a")), "has more than 4 groups in one another"),
    "too deep": ({"x": "c0"}, (*CHAIN, group("c4", 1)), "has more than 4 groups in one another"),
    "too deep beside it": (
        {"x": "root", "y": "c0"},
        (*CHAIN, group("c4", 1, "root"), group("root", 2)),
        "has more than 4 groups in one another",
    ),
    "no policy": ({"x": "c"}, (group("c", schedulingPolicy={}),), "spec.schedulingPolicy is empty; set gang."),
    "a count that is none": ({"x": "c"}, (group("c", -1),), "minGroupCount is -1; write a whole number of 1 or more"),
    "too many at once": (
        {f"g{number}": "c" for number in range(65)} | {"x": "c"},
        (group("c", 66),),
        "66 PodGroups would have to be placed at once; at most 64 are",
    ),
}


@pytest.mark.parametrize(("parents", "composites", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_wrong_with_a_tree(
    parents: Mapping[str, str], composites: tuple[CompositePodGroup, ...], problem: str
) -> None:
    """In one sentence with the object, and the PodGroup is held."""
    told = found(parents, *composites)["x"]
    assert problem in told.problem and told.groups == ()


def test_a_composites_topology() -> None:
    """Of the outermost whose groups go together; a PodGroup's own counts before it."""
    constraints = {"topology": [{"key": "rack"}]}
    told = found({"x": "c", "y": "c"}, group("c", 2, schedulingConstraints=constraints))["x"]
    assert told.topology == RACK
    assert with_nesting(GangSpec(2), told) == GangSpec(2, groups=("ns/x", "ns/y"), topology=RACK)
    own = (TopologyLevel("zone", required=True),)
    assert with_nesting(GangSpec(2, topology=own), told).topology == own
    assert with_nesting(GangSpec(0, problem="its own"), Nesting(problem="the tree's")).problem == "its own"


def test_above() -> None:
    assert (above_of("ns", "c"), above_of("ns", None), above_of("ns", "")) == ("ns/c", "", "")


@pytest.mark.parametrize("minimum", [100, 65], ids=["too few groups", "too many at once"])
def test_a_problem_of_a_composite_is_found_once(minimum: int) -> None:
    """Not once for each of the groups below it, of which there may be thousands."""
    asked = 0

    def hear(frame: FrameType, event: str, told: Any) -> None:
        nonlocal asked
        asked += event == "call" and frame.f_code.co_name == "_needed"

    parents = {f"g{number}": "c" for number in range(80)}
    sys.setprofile(hear)
    try:
        told = found(parents, group("c", minimum))
    finally:
        sys.setprofile(None)
    assert asked == 1 and len({each.problem for each in told.values()}) == 1
