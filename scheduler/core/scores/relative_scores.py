"""Scores that compare the nodes a pod may go to with each other."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np

from model.scoring import ScorePlugin
from scheduler.core.scores.node_preference import disliked, preferred
from scheduler.core.scores.normalize import by_largest, by_range, by_smallest
from scheduler.core.scores.pod_affinity import pod_affinity
from scheduler.core.scores.policy import ScorePolicy
from scheduler.core.scores.topology_spread import soft, spread_scores
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.podclass import PodClass, PodTraits
from scheduler.core.snapshot.snapshot import Amounts, Mask, NodeTraits


class ScoredPod(msgspec.Struct, frozen=True):
    """The pod to be placed, and how its scheduler name is scored."""

    pod_class: PodClass
    pod_traits: PodTraits = PodTraits()
    policy: ScorePolicy = ScorePolicy()


class ClusterScore(NamedTuple):
    """A score by its plugin's name: `points` by row, None where it tells no node from another."""

    name: ScorePlugin
    weight: Callable[[ScorePolicy], int]
    points: Callable[[PodIndex, NodeTraits, ScoredPod, Mask], Amounts | None]


class Compared(msgspec.Struct, frozen=True, eq=False):
    """What scores that compare nodes say: `total` is the weighted sum by row, 0 where not feasible; `parts` are
    (name, weight, points by row).
    """

    total: Amounts
    parts: tuple[tuple[str, int, Amounts], ...]


def cluster_scores(pod_index: PodIndex, traits: NodeTraits, asker: ScoredPod, feasible: Mask) -> Compared | None:
    """None where nothing of the kind tells one node from another.

    What would be the same for all nodes, as Kubernetes' 100 where no taint is to be avoided, is left out.
    """
    parts: list[tuple[str, int, Amounts]] = []
    for score in CLUSTER_SCORES:
        weight = score.weight(asker.policy)
        points = score.points(pod_index, traits, asker, feasible) if weight else None
        if points is not None:
            parts.append((score.name, weight, points))
    if not parts:
        return None
    total = np.add.reduce([weight * points for _, weight, points in parts])
    return Compared(np.where(feasible, total, 0), tuple(parts))


def _taints(pod_index: PodIndex, traits: NodeTraits, asker: ScoredPod, feasible: Mask) -> Amounts | None:
    raw = disliked(traits, asker.pod_class.tolerance.tolerations)
    return None if raw is None else by_smallest(raw, feasible)


def _affinity(pod_index: PodIndex, traits: NodeTraits, asker: ScoredPod, feasible: Mask) -> Amounts | None:
    terms = asker.pod_class.tolerance.affinity.preferred_nodes
    return by_largest(preferred(traits, terms), feasible) if terms else None


def _spread(pod_index: PodIndex, traits: NodeTraits, asker: ScoredPod, feasible: Mask) -> Amounts | None:
    return spread_scores(pod_index, traits, asker.pod_class, feasible) if soft(asker.pod_class) else None


def _interpod(pod_index: PodIndex, traits: NodeTraits, asker: ScoredPod, feasible: Mask) -> Amounts | None:
    raw = pod_affinity(pod_index, traits, asker.pod_class, asker.pod_traits, asker.policy.required_affinity_weight)
    return None if raw is None else by_range(raw, feasible)


CLUSTER_SCORES = (
    ClusterScore(ScorePlugin.TAINTS, attrgetter("taint_weight"), _taints),
    ClusterScore(ScorePlugin.NODE_AFFINITY, attrgetter("affinity_weight"), _affinity),
    ClusterScore(ScorePlugin.SPREAD, attrgetter("spread_weight"), _spread),
    ClusterScore(ScorePlugin.POD_AFFINITY, attrgetter("pod_affinity_weight"), _interpod),
)
