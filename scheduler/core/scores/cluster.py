"""Scores that compare the nodes a pod may go to with each other."""

from __future__ import annotations

import msgspec
import numpy as np

from scheduler.core.picture.pod_index import PodIndex
from scheduler.core.picture.podclass import Kin, PodClass
from scheduler.core.picture.snapshot import Amounts, Mask, NodeTraits
from scheduler.core.scores.node_preference import disliked, preferred
from scheduler.core.scores.normalize import by_largest, by_range, by_smallest
from scheduler.core.scores.pod_affinity import pod_affinity
from scheduler.core.scores.policy import ScorePolicy
from scheduler.core.scores.topology_spread import soft, spread_scores


class Asker(msgspec.Struct, frozen=True):
    """Who is to be placed, and how its scheduler name is scored."""

    pod_class: PodClass
    kin: Kin = Kin()
    policy: ScorePolicy = ScorePolicy()


def cluster_scores(pod_index: PodIndex, traits: NodeTraits, asker: Asker, feasible: Mask) -> Amounts | None:
    """The weighted sum by row, 0 where not feasible; None where nothing of the kind tells one node from another.

    What would be the same for all nodes, as Kubernetes' 100 where no taint is to be avoided, is left out.
    """
    parts = [part for part in _parts(pod_index, traits, asker, feasible) if part is not None]
    return np.where(feasible, np.add.reduce(parts), 0) if parts else None


def _parts(pod_index: PodIndex, traits: NodeTraits, asker: Asker, feasible: Mask) -> list[Amounts | None]:
    pod_class, policy = asker.pod_class, asker.policy
    return [
        _taints(traits, pod_class, policy, feasible),
        _affinity(traits, pod_class, policy, feasible),
        _spread(pod_index, traits, asker, feasible),
        _interpod(pod_index, traits, asker, feasible),
    ]


def _taints(traits: NodeTraits, pod_class: PodClass, policy: ScorePolicy, feasible: Mask) -> Amounts | None:
    raw = disliked(traits, pod_class.tolerance.tolerations) if policy.taint_weight else None
    return None if raw is None else policy.taint_weight * by_smallest(raw, feasible)


def _affinity(traits: NodeTraits, pod_class: PodClass, policy: ScorePolicy, feasible: Mask) -> Amounts | None:
    terms = pod_class.tolerance.affinity.preferred_nodes
    if not terms or not policy.affinity_weight:
        return None
    return policy.affinity_weight * by_largest(preferred(traits, terms), feasible)


def _spread(pod_index: PodIndex, traits: NodeTraits, asker: Asker, feasible: Mask) -> Amounts | None:
    weight = asker.policy.spread_weight
    if not weight or not soft(asker.pod_class):
        return None
    return weight * spread_scores(pod_index, traits, asker.pod_class, feasible)


def _interpod(pod_index: PodIndex, traits: NodeTraits, asker: Asker, feasible: Mask) -> Amounts | None:
    weight, policy = asker.policy.company_weight, asker.policy
    if not weight:
        return None
    raw = pod_affinity(pod_index, traits, asker.pod_class, asker.kin, policy.required_affinity_weight)
    return None if raw is None else weight * by_range(raw, feasible)
