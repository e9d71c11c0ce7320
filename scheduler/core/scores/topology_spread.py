"""Scores of topology spread constraints that only prefer (ScheduleAnyway).

Source: kubernetes pkg/scheduler/framework/plugins/podtopologyspread/scoring.go. Kubernetes' default constraints for
pods of a Service or ReplicaSet are not applied: those owners are not read.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from model.pod.affinity import SpreadConstraint
from scheduler.core.filters.static import selected, tolerated
from scheduler.core.snapshot.node_index import Column
from scheduler.core.snapshot.percent import FULL
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, Mask, NodeTraits

_HOST = "kubernetes.io/hostname"


def soft(pod_class: PodClass) -> tuple[SpreadConstraint, ...]:
    """The constraints that score."""
    return tuple(constraint for constraint in pod_class.interpod.spread if not constraint.hard)


def spread_scores(pod_index: PodIndex, traits: NodeTraits, pod_class: PodClass, feasible: Mask) -> Amounts:
    """0 to 100 by row, fewer pods alike in its domains more; 0 for a node without one of the topology labels.

    For a class that has such constraints.
    """
    constraints = soft(pod_class)
    columns = [traits.index.column(traits.labels, constraint.topology_key) for constraint in constraints]
    complete = np.logical_and.reduce([column.present for column in columns])
    scored = feasible & complete
    if not scored.any():
        return np.zeros(len(feasible), np.int64)
    totals = np.zeros(len(feasible), np.float64)
    for constraint, column in zip(constraints, columns, strict=True):
        counts = _counts(pod_index, traits, pod_class, constraint) * complete
        totals += _domain_totals(constraint, column, counts, scored)
    return _inverted(np.floor(totals + 0.5).astype(np.int64), scored)


def _counts(pod_index: PodIndex, traits: NodeTraits, pod_class: PodClass, constraint: SpreadConstraint) -> Amounts:
    """Pods the constraint counts, by row, on the nodes it takes into account."""
    namespaces = frozenset((pod_class.interpod.namespace,))
    counts = pod_index.counts(constraint.selector, namespaces, staying=True)
    if constraint.topology_key == _HOST:
        return counts
    if constraint.honor_affinity:
        counts = counts * selected(traits, pod_class.tolerance)
    if constraint.honor_taints:
        counts = counts * tolerated(traits, pod_class.tolerance.tolerations)
    return counts


def _domain_totals(
    constraint: SpreadConstraint, column: Column, counts: Amounts, scored: Mask
) -> npt.NDArray[np.float64]:
    """Pods in the domain of each row, weighed by how many domains there are: many small ones count as few large."""
    if constraint.topology_key == _HOST:
        in_domain, domains = counts, int(np.count_nonzero(scored))
    else:
        in_domain = column.spread_out(column.sums(counts))
        domains = len(np.unique(column.codes[scored]))
    return np.asarray(in_domain * math.log(domains + 2) + (constraint.max_skew - 1), np.float64)


def _inverted(totals: Amounts, scored: Mask) -> Amounts:
    least, most = int(totals[scored].min()), int(totals[scored].max())
    if most == 0:
        return np.where(scored, FULL, 0)
    return np.where(scored, FULL * (most + least - totals) // most, 0)
