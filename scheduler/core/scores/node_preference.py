"""Raw scores by what a pod prefers of nodes themselves: preferred node affinity, taints it would rather avoid.

Source: kubernetes pkg/scheduler/framework/plugins/{nodeaffinity,tainttoleration}.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from model.node import Taint, TaintEffect
from model.pod.affinity import PreferredNodes
from model.pod.spec import Toleration, Tolerations
from scheduler.core.filters.nodes import matching
from scheduler.core.snapshot.snapshot import Amounts, Mask, NodeTraits

_EFFECT = TaintEffect.PREFER_NO_SCHEDULE


def preferred(traits: NodeTraits, terms: tuple[PreferredNodes, ...]) -> Amounts:
    """By row, the sum of the weights of the terms that match."""
    raw = np.zeros(len(traits.labels), np.int64)
    for item in terms:
        raw += item.weight * matching(traits, (item.term,))
    return raw


def disliked(traits: NodeTraits, tolerations: tuple[Toleration, ...]) -> Amounts | None:
    """By row, how many PreferNoSchedule taints the pod does not tolerate; None where no node has such a taint."""
    return _untolerated(traits, tolerations) if _tainted(traits).any() else None


def _tainted(traits: NodeTraits) -> Mask:
    known = traits.index.masks.get(_EFFECT)
    if known is not None:
        return known
    found = [any(taint.effect is _EFFECT for taint in taints) for taints in traits.taints]
    return traits.index.remember(_EFFECT, np.array(found, bool))


@lru_cache(maxsize=16)
def _untolerated(traits: NodeTraits, tolerations: tuple[Toleration, ...]) -> Amounts:
    """Remembered for a few traits only, since each holds all its nodes' labels."""
    number: dict[tuple[Taint, ...], int] = {}
    told = Tolerations(tolerations)
    for taints in traits.taints:
        if taints not in number:
            number[taints] = sum(t.effect is _EFFECT and not told.allow(t) for t in taints)
    return np.array([number[taints] for taints in traits.taints], np.int64)
