"""Raw scores by whom a pod would be near: its own preferences about pods, and those of the pods already there.

Source: kubernetes pkg/scheduler/framework/plugins/interpodaffinity/scoring.go.
"""

from __future__ import annotations

import numpy as np

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
    labels, keys = traits.related.namespaces, traits.index.keys(traits.labels)
    pairs: list[tuple[str, Amounts]] = []
    for wish in pod_class.interpod.affinity.preferred_pods:
        met = pod_index.counts(wish.term.selector, namespaces_of(wish.term, pod_class.interpod.namespace, labels))
        pairs.append((wish.term.topology_key, wish.weight * met))
    pairs += pod_index.held_about(pod_traits, TermKind.PREFERRED, labels, keys)
    if required_weight:
        for key, bearers in pod_index.held_about(pod_traits, TermKind.AFFINITY, labels, keys):
            pairs.append((key, required_weight * bearers))
    pairs = [(key, weights) for key, weights in pairs if weights.any()]
    return _by_row(traits, pairs) if pairs else None


def _by_row(traits: NodeTraits, pairs: list[tuple[str, Amounts]]) -> Amounts:
    raw = np.zeros(len(traits.labels), np.int64)
    for key, weights in pairs:
        column = traits.index.column(traits.labels, key)
        raw += column.spread_out(column.sums(weights))
    return raw
