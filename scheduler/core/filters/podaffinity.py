"""Required affinity and anti-affinity between pods, in both directions.

Source: kubernetes pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
"""

from __future__ import annotations

import numpy as np

from scheduler.core.filters.pod_filter import FilteredRows, FilterRequest, FilterResult
from scheduler.core.snapshot.pod_queries import PodsOfAll, TermKind
from scheduler.core.snapshot.snapshot import LARGEST_AMOUNT, Amounts, Mask

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


def affinity(request: FilterRequest) -> FilterResult:
    """Domains of every term hold a pod that all terms match; the first of its kind may start anywhere with the labels.

    That start is `apart`: where the first one goes, the others must follow.
    """
    terms = request.pod_class.interpod.affinity.pods
    wanted = PodsOfAll(tuple(request.pods(term) for term in terms))
    found = request.pod_index.count(wanted if len(terms) > 1 else wanted.each[0])
    columns = [request.column(term.topology_key) for term in terms]
    reached = [column.occupied(found) for column in columns]
    starts = not any(mask.any() for mask in reached) and all(request.matches_itself(pods) for pods in wanted.each)
    open_rows = np.logical_and.reduce([column.present for column in columns] if starts else reached)
    return FilterResult((FilteredRows(~open_rows, AFFINITY, resolvable=False),), apart=starts)


def anti_affinity(request: FilterRequest) -> FilterResult:
    """No domain of a term holds a pod it matches. Nodes without the label are in no domain.

    A pod that its own terms match keeps its like away: from the node alone where every node is a domain.
    """
    refused = np.zeros(request.size, bool)
    most: Amounts | None = None
    apart = False
    for term in request.pod_class.interpod.affinity.anti_pods:
        column, pods = request.column(term.topology_key), request.pods(term)
        refused |= column.occupied(request.pod_index.count(pods))
        if request.matches_itself(pods):
            once = np.where(column.present, 1, LARGEST_AMOUNT)
            most = once if most is None else np.minimum(most, once)
            apart |= not column.singular
    return FilterResult((FilteredRows(refused, ANTI_AFFINITY, resolvable=True),), most, apart)


def existing(request: FilterRequest) -> FilterResult:
    """No domain of a term that a resident holds against pods like this one holds such a resident."""
    traits, index = request.traits, request.pod_index
    keys = traits.index.keys(traits.labels)
    by_key: dict[str, Mask] = {}
    for key, rows in index.held_about(request.pod_traits, TermKind.ANTI, traits.related.namespaces, keys):
        occupied = request.column(key).occupied(rows)
        by_key[key] = by_key.get(key, occupied) | occupied
    if not by_key:
        return FilterResult()
    return FilterResult((FilteredRows(np.logical_or.reduce(list(by_key.values())), EXISTING, resolvable=True),))
