"""Flavours of workloads that wait in queues which count by them: which they get, and what follows for their pods.

A workload gets flavours for all its waiting pods where these fit at once, else for those that it needs. Its pods then
go to nodes with the labels of these flavours alone, and count to these. What is kept for it on nodes is of the
flavours that it was kept for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import msgspec

from model.flavor.assignment import FlavorAssignment, FlavorMode, FlavorRequest
from model.flavor.resource_flavor import ResourceFlavor
from model.node import TaintEffect
from model.pod.spec import Toleration
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import Claim
from scheduler.core.queues.flavors import FlavorQuestion, assign
from scheduler.core.snapshot.podclass import PodClass

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Resource and flavour."""


def chosen(question: FlavorQuestion, candidate: Candidate, needed: Sequence[int]) -> FlavorAssignment:
    """What its queue's flavours offer; `needed` is how many pods of each set must be placed at once."""
    every = assign(question, requests(candidate, [pods.count for pods in candidate.workload.pod_sets]))
    if every.mode is FlavorMode.FIT:
        return every
    counts = list(needed) if any(needed) else [1, *(0 for _ in needed[1:])]
    if counts == [pods.count for pods in candidate.workload.pod_sets]:
        return every
    return assign(question, requests(candidate, counts))


def requests(candidate: Candidate, counts: Sequence[int]) -> tuple[FlavorRequest, ...]:
    """So many pods of each set."""
    sets = zip(candidate.classes, candidate.workload.pod_sets, counts, strict=True)
    return tuple(
        FlavorRequest(
            pods.name,
            count,
            dict(own.request),
            node_selector=dict(own.tolerance.node_selector),
            node_terms=own.tolerance.affinity.nodes,
            tolerations=own.tolerance.tolerations,
        )
        for own, pods, count in sets
    )


def with_flavors(
    candidate: Candidate, assignment: FlavorAssignment, flavors: Mapping[str, ResourceFlavor]
) -> Candidate:
    """The candidate whose pods count to the flavours of their sets, and go to nodes of these."""
    if len(assignment.pod_sets) != len(candidate.classes):
        return candidate
    pairs = [tuple(sorted(each.flavors.items())) for each in assignment.pod_sets]
    return _replaced(candidate, pairs, flavors)


def as_kept(candidate: Candidate, claim: Claim, flavors: Mapping[str, ResourceFlavor]) -> Candidate:
    """The candidate with the flavours of the room that is kept for it."""
    kept = {pod.uid: pod.pod_class.flavors for pod in claim.pods}
    any_kept = next(iter(kept.values()), ())
    pairs = [next((kept[uid] for uid in pods.uids if uid in kept), any_kept) for pods in candidate.workload.pod_sets]
    return _replaced(candidate, pairs, flavors)


def as_bound(
    candidate: Candidate, bound: Mapping[tuple[tuple[str, int], ...], Pairs], flavors: Mapping[str, ResourceFlavor]
) -> Candidate:
    """The rest of a gang with the flavours of its members that have nodes, `bound` by what these request: a pod set is
    of one flavour. As it is where one of its sets has no such member.
    """
    pairs = [bound.get(own.request, ()) for own in candidate.classes]
    return _replaced(candidate, pairs, flavors) if all(pairs) else candidate


def flavors_in(candidate: Candidate) -> Collection[str]:
    """The flavours that its pods count to."""
    return {flavor for own in candidate.classes for _, flavor in own.flavors}


def _replaced(candidate: Candidate, pairs: Sequence[Pairs], flavors: Mapping[str, ResourceFlavor]) -> Candidate:
    classes = tuple(_flavored(own, of, flavors) for own, of in zip(candidate.classes, pairs, strict=True))
    return msgspec.structs.replace(candidate, classes=classes)


def _flavored(own: PodClass, pairs: Pairs, flavors: Mapping[str, ResourceFlavor]) -> PodClass:
    if not pairs:
        return own
    named = [flavors[name] for name in sorted({flavor for _, flavor in pairs}) if name in flavors]
    selector = dict(own.tolerance.node_selector)
    for flavor in named:
        selector.update(flavor.node_labels)
    tolerations = (*own.tolerance.tolerations, *(_when_placed(each) for flavor in named for each in flavor.tolerations))
    tolerance = msgspec.structs.replace(
        own.tolerance, node_selector=tuple(sorted(selector.items())), tolerations=tuple(dict.fromkeys(tolerations))
    )
    return msgspec.structs.replace(own, tolerance=tolerance, flavors=pairs)


def _when_placed(toleration: Toleration) -> Toleration:
    """A flavour's toleration is no word of a pod that exists already: it helps where pods are placed, and where a taint
    evicts pods it does not.
    """
    if toleration.effect is not None:
        return toleration
    return msgspec.structs.replace(toleration, effect=TaintEffect.NO_SCHEDULE)
