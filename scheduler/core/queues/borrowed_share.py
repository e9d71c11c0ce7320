"""Borrowed share: the number by which Kueue's fair sharing compares its queues, in statuses and for evictions by share.

Largest over the resources: what a queue uses above its own, of all flavours, in thousandths of what its cohort could
lend, divided by the weight. 0 for a queue that borrows nothing. Source: kueue pkg/cache/scheduler/fair_sharing.go.
"""

from __future__ import annotations

from fractions import Fraction

from model.queue import ROOT_QUEUE
from scheduler.core.queues.headroom import Quota

_WEIGHT_ONE = 1000
"""Weights of queues in a cohort are thousandths."""


def borrowed_share(quota: Quota, queue: str) -> int:
    """Of one queue or cohort, as a status has it; 0 for one that is in none."""
    return int(1000 * exact_share(quota, queue))


def exact_share(quota: Quota, queue: str) -> Fraction:
    """The same as a part of 1, not rounded: two that differ are never equal."""
    tree = quota.tree
    parent, own = tree.parent(queue), tree.queues.get(queue)
    if own is None or parent == ROOT_QUEUE:
        return Fraction(0)
    borrowed: dict[str, int] = {}
    for cell, said in own.cells.items():
        more = max(0, quota.used(queue, cell) - (said.nominal or 0))
        borrowed[cell[1]] = borrowed.get(cell[1], 0) + more
    lendable: dict[str, int] = {}
    for cell in tree.queues[parent].cells:
        most = quota.potential(parent, cell).amount or 0
        lendable[cell[1]] = lendable.get(cell[1], 0) + max(0, most - quota.unlent(parent, cell))
    shares = (Fraction(more, lendable[name]) for name, more in borrowed.items() if lendable.get(name, 0) > 0)
    return max(shares, default=Fraction(0)) * _WEIGHT_ONE / max(1, own.weight)
