"""Scores of how much of a node is asked for. Arrays are resource × node; whole numbers 0 to 100 as in Kubernetes.

Source: kubernetes pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,
requested_to_capacity_ratio,balanced_allocation}.go, helper/shape_score.go. A resource of which a node has none is left
out for that node. `requested` includes the pod that is scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from model.scoring import ScoringStrategyType
from scheduler.core.scores.policy import ScorePolicy, ShapePoint
from scheduler.core.snapshot.percent import FULL, percent
from scheduler.core.snapshot.snapshot import Amounts


def fit_scores(policy: ScorePolicy, requested: Amounts, allocatable: Amounts, weights: Amounts) -> Amounts:
    """By the policy's strategy; `weights` are one a resource."""
    match policy.strategy:
        case ScoringStrategyType.SPREAD:
            return least_allocated(requested, allocatable, weights)
        case ScoringStrategyType.BINPACK:
            return most_allocated(requested, allocatable, weights)
        case ScoringStrategyType.RATIO:
            return capacity_ratio(requested, allocatable, weights, policy.shape)


def least_allocated(requested: Amounts, allocatable: Amounts, weights: Amounts) -> Amounts:
    """The mean percentage left; 0 of a resource that is overcommitted."""
    left = allocatable - requested
    np.maximum(left, 0, out=left)
    return _mean(percent(left, np.maximum(allocatable, 1)), allocatable, weights)


def most_allocated(requested: Amounts, allocatable: Amounts, weights: Amounts) -> Amounts:
    """The mean percentage asked for, at most all."""
    return _mean(_utilization(requested, allocatable), allocatable, weights)


def capacity_ratio(requested: Amounts, allocatable: Amounts, weights: Amounts, shape: Sequence[ShapePoint]) -> Amounts:
    """The mean of a broken line over utilisation, rounded half up; a resource that scores 0 there does not count."""
    line = np.array([_on_line(percent, shape) for percent in range(FULL + 1)], np.int64)
    scores = line[_utilization(requested, allocatable)]
    counted = (allocatable > 0) & (scores > 0)
    total = (scores * counted * weights[:, None]).sum(axis=0)
    weight = np.maximum((counted * weights[:, None]).sum(axis=0), 1)
    return np.asarray((2 * total + weight) // (2 * weight))


def balanced(requested: Amounts, allocatable: Amounts) -> Amounts:
    """(1 − standard deviation of the fractions asked for) · 100."""
    if len(allocatable) == 2 and allocatable.all():
        both = np.minimum(requested / allocatable, 1.0)
        return np.asarray(((1.0 - np.abs(both[0] - both[1]) / 2) * FULL).astype(np.int64))
    known = allocatable > 0
    fractions = np.where(known, np.minimum(requested / np.maximum(allocatable, 1), 1.0), 0.0)
    number = known.sum(axis=0)
    mean = fractions.sum(axis=0) / np.maximum(number, 1)
    variance = np.where(known, (fractions - mean) ** 2, 0.0).sum(axis=0) / np.maximum(number, 1)
    return np.asarray(((1.0 - _deviation(fractions, known, number, variance)) * FULL).astype(np.int64))


def _deviation(
    fractions: npt.NDArray[np.float64], known: npt.NDArray[np.bool_], number: Amounts, variance: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Of two fractions it is half their difference, exactly: the root of a square is off by a rounding."""
    largest = np.where(known, fractions, -np.inf).max(axis=0)
    smallest = np.where(known, fractions, np.inf).min(axis=0)
    pair = np.where(number == 2, largest, 0.0) - np.where(number == 2, smallest, 0.0)
    return np.where(number == 2, pair / 2, np.where(number > 2, np.sqrt(variance), 0.0))


def _utilization(requested: Amounts, allocatable: Amounts) -> Amounts:
    """Percent, 0 to 100."""
    used = np.minimum(requested, allocatable)
    np.maximum(used, 0, out=used)
    return percent(used, np.maximum(allocatable, 1))


def _mean(scores: Amounts, allocatable: Amounts, weights: Amounts) -> Amounts:
    """The weighted mean over the resources the node has, rounded down."""
    if allocatable.all():
        return np.asarray((weights @ scores) // max(int(weights.sum()), 1))
    counted = (allocatable > 0) * weights[:, None]
    return np.asarray((scores * counted).sum(axis=0) // np.maximum(counted.sum(axis=0), 1))


def _on_line(percent: int, shape: Sequence[ShapePoint]) -> int:
    """The line through the points, level before the first and after the last; Go's division, towards zero."""
    if percent <= shape[0].utilization_pct:
        return shape[0].score * 10
    for before, after in pairwise(shape):
        if percent <= after.utilization_pct:
            rise = (after.score - before.score) * 10 * (percent - before.utilization_pct)
            width = after.utilization_pct - before.utilization_pct
            return before.score * 10 + (abs(rise) // width) * (1 if rise >= 0 else -1)
    return shape[-1].score * 10
