"""Raw scores by whom a pod would be near: its own preferences about pods, and those of the pods already there.

Source: kubernetes pkg/scheduler/framework/plugins/interpodaffinity/scoring.go.
"""

from __future__ import annotations

import numpy as np

from model.pod.affinity import PodTerm
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.pod_queries import TermKind, namespaces_of
from scheduler.core.snapshot.podclass import PodClass, PodTraits
from scheduler.core.snapshot.snapshot import Amounts, NodeTraits


def pod_affinity(
    pod_index: PodIndex, traits: NodeTraits, pod_class: PodClass, pod_traits: PodTraits, required_weight: int
) -> Amounts | None:
    """By row, the weights of all pairs of pods that like (or, negative, dislike) to share its domains.

    A resident's required affinity to the pod counts `required_weight`. None where there is no such pair.
    """
    labels = traits.related.namespaces
    pairs: list[tuple[PodTerm, Amounts]] = []
    for wish in pod_class.interpod.affinity.preferred_pods:
        met = pod_index.counts(wish.term.selector, namespaces_of(wish.term, pod_class.interpod.namespace, labels))
        pairs.append((wish.term, wish.weight * met))
    for held, bearers in pod_index.held_about(pod_traits, TermKind.PREFERRED, labels):
        pairs.append((held.term, held.weight * bearers))
    if required_weight:
        for held, bearers in pod_index.held_about(pod_traits, TermKind.AFFINITY, labels):
            pairs.append((held.term, required_weight * bearers))
    pairs = [(term, weights) for term, weights in pairs if weights.any()]
    return _by_row(traits, pairs) if pairs else None


def _by_row(traits: NodeTraits, pairs: list[tuple[PodTerm, Amounts]]) -> Amounts:
    raw = np.zeros(len(traits.labels), np.int64)
    for term, weights in pairs:
        column = traits.index.column(traits.labels, term.topology_key)
        raw += column.spread_out(column.sums(weights))
    return raw
