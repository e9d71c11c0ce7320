"""Topology spread constraints that forbid (DoNotSchedule).

Source: kubernetes pkg/scheduler/framework/plugins/podtopologyspread/{filtering,common}.go.
"""

from __future__ import annotations

import numpy as np

from model.pod.affinity import SpreadConstraint
from scheduler.core.filters.pod_filter import FilteredRows, FilterRequest, FilterResult
from scheduler.core.filters.static import selected, tolerated
from scheduler.core.snapshot.pod_queries import Pods
from scheduler.core.snapshot.snapshot import Mask

SPREAD = "node(s) didn't match pod topology spread constraints"
UNLABELLED = "node(s) didn't match pod topology spread constraints (missing required label)"


def spread(request: FilterRequest) -> FilterResult:
    """The skew after placing, residents that are going left out, is at most what each constraint allows.

    A node that lacks the label of any constraint counts for none.
    """
    constraints = tuple(constraint for constraint in request.pod_class.interpod.spread if constraint.hard)
    labelled = np.logical_and.reduce([request.column(constraint.topology_key).present for constraint in constraints])
    refusals: list[FilteredRows] = []
    apart = False
    for constraint in constraints:
        pods = _counted(request, constraint)
        matches = request.matches_itself(pods)
        refusals.append(FilteredRows(~request.column(constraint.topology_key).present, UNLABELLED, resolvable=False))
        skewed = _skewed(request, constraint, labelled & _eligible(request, constraint), matches=matches)
        refusals.append(FilteredRows(skewed, SPREAD, resolvable=True))
        apart |= matches
    return FilterResult(tuple(refusals), apart=apart)


def _counted(request: FilterRequest, constraint: SpreadConstraint) -> Pods:
    return Pods(constraint.selector, frozenset((request.pod_traits.namespace,)), staying=True)


def _eligible(request: FilterRequest, constraint: SpreadConstraint) -> Mask:
    """Rows that the constraint counts (nodeAffinityPolicy and nodeTaintsPolicy)."""
    rows = np.ones(request.size, bool)
    if constraint.honor_affinity:
        rows &= selected(request.traits, request.pod_class.tolerance)
    if constraint.honor_taints:
        rows &= tolerated(request.traits, request.pod_class.tolerance.tolerations)
    return rows


def _skewed(request: FilterRequest, constraint: SpreadConstraint, eligible: Mask, *, matches: bool) -> Mask:
    """Rows on which one more pod makes the skew too large.

    With fewer domains than `min_domains` the least is taken to be 0.
    """
    column = request.column(constraint.topology_key)
    found = column.sums(np.where(eligible, request.pod_index.count(_counted(request, constraint)), 0))
    domains = column.sums(eligible.astype(np.int64)) > 0
    enough = np.count_nonzero(domains) >= max(constraint.min_domains, 1)
    least = int(found[domains].min()) if enough else 0
    return np.asarray(column.spread_out(found) + int(matches) - least > constraint.max_skew)
