"""Residents on nodes, terms about them, and what the filters say of one more pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from scheduler_builders import snapshot

from model.node import Node
from model.pod.affinity import Affinity, PodTerm, SpreadConstraint
from model.pod.pod import Pod
from model.selector import Operator, Requirement, Selector
from scheduler.core.filters.obstacles import Obstacles, obstacles
from scheduler.core.snapshot.node_index import NodeIndex
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.podclass import class_of, pod_traits_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot, RelatedObjects

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def within(key: str, *values: str) -> Requirement:
    return Requirement(key, Operator.IN, values)


def selector(**labels: str) -> Selector:
    return Selector(tuple(within(key, value) for key, value in labels.items()))


def term(key: str = ZONE, namespaces: tuple[str, ...] = (), where: Selector | None = None, **labels: str) -> PodTerm:
    """Pods with these labels; `where` picks namespaces by their labels."""
    return PodTerm(key, selector(**labels), namespaces, where)


def near(*terms: PodTerm) -> Affinity:
    return Affinity(pods=terms)


def apart(*terms: PodTerm) -> Affinity:
    return Affinity(anti_pods=terms)


def evenly(key: str = ZONE, max_skew: int = 1, *, hard: bool = True, **more: Any) -> SpreadConstraint:
    """Over pods labelled app=a, unless `selector` says otherwise."""
    return SpreadConstraint(key, max_skew, hard, more.pop("selector", selector(app="a")), **more)


def cluster(*nodes: Node, namespaces: Mapping[str, Mapping[str, str]] | None = None, **others: Any) -> ClusterSnapshot:
    """Nodes with what lies around them."""
    taken = snapshot(*nodes)
    around = RelatedObjects(namespaces=namespaces or {}, **others)
    traits = msgspec.structs.replace(taken.traits, related=around, verdicts={}, index=NodeIndex())
    return msgspec.structs.replace(taken, traits=traits)


def pod_index(seen: ClusterSnapshot, residents: Iterable[tuple[Pod, str]]) -> PodIndex:
    """Each resident on the node it names."""
    there = PodIndex(len(seen.names))
    for resident, name in residents:
        there.put(pod_traits_of(resident), seen.names.index(name))
    return there


def asked(seen: ClusterSnapshot, there: PodIndex, wanted: Pod) -> Obstacles:
    return obstacles(there, seen.traits, class_of(wanted), pod_traits_of(wanted))


def told(found: Obstacles) -> list[str]:
    """The reason by row, empty where there is none."""
    return [found.reasons[index] if index >= 0 else "" for index in found.reason_of.tolist()]
