"""Nested pod groups of scheduling.k8s.io: PodGroups and composite groups below a CompositePodGroup (KEP-6012).

A composite of policy gang wants `minGroupCount` of its groups placed at once: its first ones, PodGroups before
composites and by name, since any would do. One of policy basic holds no group back for another, and counts above it as
soon as one of its groups does.
Source: k8s.io/api/scheduling/v1alpha3/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kube.objects import CompositePodGroup
from model.workload import GangSpec, TopologyLevel

_DEEPEST = 4
"""Levels of groups, as kube-scheduler allows."""
_MOST_GROUPS = 64


class Composite(msgspec.Struct, frozen=True):
    """`minimum` is how many of its groups go together, 0 where each goes alone; `parent` is the one above it by key."""

    key: str
    parent: str = ""
    minimum: int = 0
    topology: tuple[TopologyLevel, ...] = ()
    problem: str = ""


class Nesting(msgspec.Struct, frozen=True):
    """What follows for one PodGroup: the keys of all that go with it, sorted, none for it alone."""

    groups: tuple[str, ...] = ()
    topology: tuple[TopologyLevel, ...] = ()
    problem: str = ""


class _Broken(Exception):
    """Why a group has no place in its tree, in words."""


def composite(source: CompositePodGroup) -> Composite:
    """What cannot be read becomes `problem`, naming object and field."""
    metadata, spec = source.metadata, source.spec
    key = f"{metadata.namespace}/{metadata.name}"
    gang, policy = spec.scheduling_policy.gang, spec.scheduling_policy
    problem = ""
    if gang is None and policy.basic is None:
        problem = f"CompositePodGroup {key}: spec.schedulingPolicy is empty; set gang.minGroupCount or basic"
    elif gang is not None and gang.min_group_count < 1:
        told = f"CompositePodGroup {key}: spec.schedulingPolicy.gang.minGroupCount is {gang.min_group_count}"
        problem = f"{told}; write a whole number of 1 or more"
    constraints = spec.scheduling_constraints
    levels = (constraints.topology if constraints else None) or ()
    topology = tuple(TopologyLevel(each.key, required=True) for each in levels if each.key)
    above = above_of(metadata.namespace, spec.parent_composite_pod_group_name)
    return Composite(key, above, gang.min_group_count if gang else 0, topology, problem)


def above_of(namespace: str, parent: str | None) -> str:
    """The key of the composite above a group, empty for a root."""
    return f"{namespace}/{parent}" if parent else ""


def nestings(parents: Mapping[str, str], composites: Mapping[str, Composite]) -> Mapping[str, Nesting]:
    """`parents` are PodGroups that have a composite above them, each with its key."""
    below: dict[str, list[str]] = {}
    for key, above in sorted(parents.items()):
        below.setdefault(above, []).append(key)
    inner: dict[str, list[Composite]] = {}
    for each in sorted(composites.values(), key=lambda each: each.key):
        inner.setdefault(each.parent, []).append(each)
    tree = _Tree(composites, below, inner, {})
    return {key: _nesting(tree, key, above) for key, above in parents.items()}


def with_nesting(spec: GangSpec, found: Nesting) -> GangSpec:
    """A PodGroup's own definition, and what its tree says. Its own topology counts before that of a composite."""
    nested: GangSpec = msgspec.structs.replace(
        spec,
        groups=found.groups,
        topology=spec.topology or found.topology,
        problem=spec.problem or found.problem,
    )
    return nested


class _Tree(msgspec.Struct, frozen=True):
    composites: Mapping[str, Composite]
    below: Mapping[str, Sequence[str]]
    inner: Mapping[str, Sequence[Composite]]
    known: dict[str, frozenset[str] | _Broken]

    def above(self, key: str, first: str) -> Iterator[Composite]:
        """The composites above a PodGroup, from the innermost. Raises _Broken."""
        where, deep = f"PodGroup {key}: spec.parentCompositePodGroupName", 1
        while first:
            deep += 1
            found = self.composites.get(first)
            if found is None:
                told = f"{where} leads to {first}, and there is no such CompositePodGroup"
                raise _Broken(f"{told}, or the scheduler may not list and watch compositepodgroups.scheduling.k8s.io")
            if deep > _DEEPEST:
                raise _Broken(f"{where} has more than {_DEEPEST} groups in one another, or a circle")
            if found.problem:
                raise _Broken(found.problem)
            yield found
            first = found.parent

    def needed(self, each: Composite, deep: int = 1) -> frozenset[str]:
        """The PodGroups below a composite that must be placed at once for it to count. Raises _Broken."""
        found = self.known.get(each.key)
        if found is None:
            try:
                found = self._needed(each, deep)
            except _Broken as broken:
                # Remembered as well: each of thousands of groups below it asks.
                found = broken
            self.known[each.key] = found
        if isinstance(found, _Broken):
            raise _Broken(str(found))
        return found

    def _needed(self, each: Composite, deep: int) -> frozenset[str]:
        if deep > _DEEPEST:
            raise _Broken(f"CompositePodGroup {each.key} has more than {_DEEPEST} groups in one another, or a circle")
        children = [frozenset((key,)) for key in self.below.get(each.key, ())]
        children += [self.needed(child, deep + 1) for child in self.inner.get(each.key, ())]
        if len(children) < each.minimum:
            told = f"CompositePodGroup {each.key} needs {each.minimum} groups at once"
            raise _Broken(f"{told}, and {len(children)} name it as their parent")
        together = frozenset[str]().union(*children[: each.minimum or 1])
        if len(together) > _MOST_GROUPS:
            told = f"CompositePodGroup {each.key}: {len(together)} PodGroups would have to be placed at once"
            raise _Broken(f"{told}; at most {_MOST_GROUPS} are")
        return together


def _nesting(tree: _Tree, key: str, parent: str) -> Nesting:
    """From the innermost composite outwards, as long as the group is among those that it needs."""
    together, topology = frozenset((key,)), tuple[TopologyLevel, ...]()
    try:
        chain = list(tree.above(key, parent))
        for each in chain:
            needed = tree.needed(each) if each.minimum else frozenset[str]()
            if not together <= needed:
                break
            together, topology = needed, each.topology or topology
    except _Broken as broken:
        return Nesting(problem=str(broken))
    return Nesting(tuple(sorted(together)) if len(together) > 1 else (), topology)
