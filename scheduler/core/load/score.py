"""The load score: nodes that use least, by measurement and estimate, are best.

Source: Koordinator plugins/loadaware/load_aware.go (Score, loadAwareSchedulingScorer).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from model.qos import PriorityBand
from model.report import Usage
from model.resources import CPU, MEMORY
from scheduler.core.load.arrays import ALL, LoadArrays, LoadView, capacities
from scheduler.core.load.estimate import estimate
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.snapshot.percent import percent
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot, Mask


def load_scores(
    arrays: LoadArrays, snapshot: ClusterSnapshot, pod_class: PodClass, rows: Amounts | None = None
) -> Amounts:
    """0 to 100 for `rows` (None: all), with one more pod of the class there; 0 where the use is unknown or expired."""
    policy = arrays.policy
    by_prod = policy.score_prod_usage and pod_class.estimate.band is PriorityBand.PROD
    view = arrays.prod if by_prod else arrays.scored
    at = ALL if rows is None else rows
    used = np.maximum(view.used[at].T, 0) + _pair(estimate(pod_class, policy))
    total = np.array((capacities(snapshot, CPU, at), capacities(snapshot, MEMORY, at)))
    free = percent(np.maximum(total - used, 0), np.maximum(total, 1))
    return _weighted(policy, free) * _fresh(arrays, view, at)


@lru_cache(maxsize=4096)
def _pair(usage: Usage) -> Amounts:
    """Resource × 1."""
    return np.array(((usage.cpu_millis,), (usage.memory_bytes,)), np.int64)


def _weighted(policy: LoadPolicy, free: Amounts) -> Amounts:
    """The mean of CPU's and memory's percentage left, and of the lesser where that has a weight of its own."""
    weights = np.array((policy.cpu_weight, policy.memory_weight), np.int64)
    if not weights.any():
        return np.zeros(free.shape[1], np.int64)
    total = weights @ free
    if policy.dominant_weight:
        total += free[weights > 0].min(axis=0) * policy.dominant_weight
    return np.asarray(total // (policy.cpu_weight + policy.memory_weight + policy.dominant_weight))


def _fresh(arrays: LoadArrays, view: LoadView, at: Amounts | slice) -> Mask:
    """Whether the use of each row is known and recent enough."""
    oldest = arrays.now - arrays.policy.expiry_seconds if arrays.policy.expiry_seconds > 0 else -np.inf
    return np.asarray(view.seconds[at] > oldest)
