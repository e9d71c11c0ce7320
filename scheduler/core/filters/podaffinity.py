"""Required affinity and anti-affinity between pods, in both directions.

Source: kubernetes pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
"""

from __future__ import annotations

import numpy as np

from scheduler.core.filters.pod_filter import Answer, Asking, Refusal
from scheduler.core.picture.pod_queries import AllOf, TermKind
from scheduler.core.picture.snapshot import LARGEST_AMOUNT, Amounts, Mask

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


def affinity(asking: Asking) -> Answer:
    """Domains of every term hold a pod that all terms match; the first of its kind may start anywhere with the labels.

    That start is `apart`: where the first one goes, the others must follow.
    """
    terms = asking.pod_class.company.affinity.pods
    wanted = AllOf(tuple(asking.pods(term) for term in terms))
    found = asking.crowd.count(wanted if len(terms) > 1 else wanted.each[0])
    columns = [asking.column(term.topology_key) for term in terms]
    reached = [column.occupied(found) for column in columns]
    starts = not any(mask.any() for mask in reached) and all(asking.matches_itself(pods) for pods in wanted.each)
    open_rows = np.logical_and.reduce([column.present for column in columns] if starts else reached)
    return Answer((Refusal(~open_rows, AFFINITY, resolvable=False),), apart=starts)


def anti_affinity(asking: Asking) -> Answer:
    """No domain of a term holds a pod it matches. Nodes without the label are in no domain.

    A pod that its own terms match keeps its like away: from the node alone where every node is a domain.
    """
    refused = np.zeros(asking.size, bool)
    most: Amounts | None = None
    apart = False
    for term in asking.pod_class.company.affinity.anti_pods:
        column, pods = asking.column(term.topology_key), asking.pods(term)
        refused |= column.occupied(asking.crowd.count(pods))
        if asking.matches_itself(pods):
            once = np.where(column.present, 1, LARGEST_AMOUNT)
            most = once if most is None else np.minimum(most, once)
            apart |= not column.singular
    return Answer((Refusal(refused, ANTI_AFFINITY, resolvable=True),), most, apart)


def existing(asking: Asking) -> Answer:
    """No domain of a term that a resident holds against pods like this one holds such a resident."""
    namespaces = asking.traits.surroundings.namespaces
    by_key: dict[str, Mask] = {}
    for held, rows in asking.crowd.held_about(asking.kin, TermKind.ANTI, namespaces):
        occupied = asking.column(held.term.topology_key).occupied(rows)
        by_key[held.term.topology_key] = by_key.get(held.term.topology_key, occupied) | occupied
    if not by_key:
        return Answer()
    return Answer((Refusal(np.logical_or.reduce(list(by_key.values())), EXISTING, resolvable=True),))
