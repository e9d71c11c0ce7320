"""Queries of filters and scores about residents, as hashable values: which of them count.

Source: kubernetes pkg/scheduler/framework/types.go (AffinityTerm.Matches) and plugins/nodeports.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

import msgspec

from model.pod.affinity import HostPort, PodTerm
from model.selector import Operator, Selector
from scheduler.core.snapshot.podclass import PodTraits

Labels: TypeAlias = Mapping[str, str]
Pair: TypeAlias = tuple[str, str]
_EVERY_ADDRESS = "0.0.0.0"
_MOST_PAIRS = 64
"""Of a selector that lists more values no list is given: who asks goes through the pods, of which there are fewer."""


class TermKind(StrEnum):
    """What a term of a resident means for who comes: it must keep away, it is wanted near, or one of them is liked."""

    ANTI = "anti-affinity"
    AFFINITY = "affinity"
    PREFERRED = "preferred"


class ResidentTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """A term as a resident of `namespace` holds it (empty where the term itself names namespaces).

    `weight` is 0 for a required term.
    """

    kind: TermKind
    term: PodTerm
    namespace: str = ""
    weight: int = 0


class Pods(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods that `selector` matches (None: none) in `namespaces` (None: in all); `staying`: without those that go."""

    selector: Selector | None
    namespaces: frozenset[str] | None = None
    staying: bool = False

    def holds(self, pod_traits: PodTraits, labels: Labels) -> bool:
        if self.selector is None or (self.staying and pod_traits.terminating):
            return False
        if self.namespaces is not None and pod_traits.namespace not in self.namespaces:
            return False
        return self.selector.matches(labels)


class PodsOfAll(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods that every one of `each` counts."""

    each: tuple[Pods, ...]

    def holds(self, pod_traits: PodTraits, labels: Labels) -> bool:
        return all(pods.holds(pod_traits, labels) for pods in self.each)


class PodsWithTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods that hold this very term."""

    held: ResidentTerm

    def holds(self, pod_traits: PodTraits, labels: Labels) -> bool:
        return self.held in held_by(pod_traits)


class PortUsers(msgspec.Struct, frozen=True, cache_hash=True, dict=True):
    """Pods whose host ports clash with one of `ports`: of two pods of one node one port, 0.0.0.0 is every address."""

    ports: tuple[HostPort, ...]

    def holds(self, pod_traits: PodTraits, labels: Labels) -> bool:
        """Costs by the pod's own ports, however many are asked about."""
        return any(map(self._clashes, pod_traits.ports))

    def _clashes(self, theirs: HostPort) -> bool:
        ours = self._addresses.get((theirs.port, theirs.protocol))
        if ours is None:
            return False
        return theirs.ip == _EVERY_ADDRESS or not ours.isdisjoint((theirs.ip, _EVERY_ADDRESS))

    @cached_property
    def _addresses(self) -> Mapping[tuple[int, str], set[str]]:
        """By port and protocol."""
        found: dict[tuple[int, str], set[str]] = {}
        for each in self.ports:
            found.setdefault((each.port, each.protocol), set()).add(each.ip)
        return found


PodQuery: TypeAlias = Pods | PodsOfAll | PodsWithTerm | PortUsers


def held_by(pod_traits: PodTraits) -> tuple[ResidentTerm, ...]:
    """All terms a pod holds about others."""
    terms = pod_traits.affinity
    if not (terms.anti_pods or terms.pods or terms.preferred_pods):
        return ()
    return (
        *(_held(TermKind.ANTI, term, pod_traits.namespace) for term in terms.anti_pods),
        *(_held(TermKind.AFFINITY, term, pod_traits.namespace) for term in terms.pods),
        *(_held(TermKind.PREFERRED, each.term, pod_traits.namespace, each.weight) for each in terms.preferred_pods),
    )


def _held(kind: TermKind, term: PodTerm, namespace: str, weight: int = 0) -> ResidentTerm:
    own = not term.namespaces and term.namespace_selector is None
    return ResidentTerm(kind, term, namespace if own else "", weight)


def namespaces_of(term: PodTerm, own: str, labels: Mapping[str, Labels]) -> frozenset[str] | None:
    """The namespaces a term of a pod in `own` looks at, None for all; `labels` are those of each known namespace."""
    if term.namespace_selector is None:
        return frozenset(term.namespaces or (own,))
    if not term.namespace_selector.requirements:
        return None
    matched = (name for name, found in labels.items() if term.namespace_selector.matches(found))
    return frozenset((*term.namespaces, *matched))


def needed_pairs(selector: Selector | None) -> Collection[Pair] | None:
    """Labels of which a matching pod has at least one; None where no such list can be given, or it is a long one."""
    if selector is None:
        return ()
    for requirement in selector.requirements:
        if requirement.operator is Operator.IN and len(requirement.values) <= _MOST_PAIRS:
            return tuple((requirement.key, value) for value in requirement.values)
    return None
