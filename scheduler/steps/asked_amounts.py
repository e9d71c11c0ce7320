"""Asked amounts: what of its queue a workload asks for, in all and at the least, and what is kept for it already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from model.queue import Cell
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import ClaimKind
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.ledger.queue_book import add, cells_of
from scheduler.core.preemption.demand import needed_only
from scheduler.core.queueing.queue_refusal import amounts_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot

OWN = (ClaimKind.NOMINATED, ClaimKind.ADMITTED)
"""What is kept for a workload by these counts to its queue."""


class AskedAmounts:
    """Of one turn."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot

    def begin(self, snapshot: ClusterSnapshot) -> None:
        """Another turn."""
        self._snapshot = snapshot

    def in_all(self, candidate: Candidate) -> Mapping[Cell, int]:
        """What all its waiting pods ask for together."""
        sets = candidate.workload.pod_sets
        return candidate.classes[0].cells(len(sets[0].uids)) if len(sets) == 1 else amounts_of(candidate)

    def at_once(self, candidate: Candidate) -> Mapping[Cell, int]:
        """What it must have at once: all members it needs, or one of those above its minimum."""
        needed, sets = candidate.needed, candidate.workload.pod_sets
        if not needed:
            return candidate.classes[0].cells()
        if len(sets) == 1 and needed >= (number := len(sets[0].uids)):
            return candidate.classes[0].cells(number)
        return self.in_all(candidate if needed >= candidate.pending else needed_only(self._snapshot, candidate))

    def needed(self, candidate: Candidate) -> list[int]:
        """How many pods of each set it needs."""
        if not candidate.needed:
            return [0] * len(candidate.classes)
        uids = set(needed_only(self._snapshot, candidate).uids)
        return [len(uids.intersection(pods.uids)) for pods in candidate.workload.pod_sets]


def by_resource(amounts: Iterable[Mapping[Cell, int]]) -> Counter[str]:
    """All together, of whichever flavour."""
    found: Counter[str] = Counter()
    for each in amounts:
        for (_, name), amount in each.items():
            found[name] += amount
    return found


def kept_for(ledger: Ledger, candidate: Candidate) -> dict[str, dict[Cell, int]]:
    """By queue, what is kept for it already, which it does not need twice."""
    found: dict[str, dict[Cell, int]] = {}
    for kind in OWN:
        claim = ledger.claim(kind, candidate.subject)
        for pod in claim.pods if claim is not None else ():
            add(found.setdefault(claim.queue if claim is not None else "", {}), cells_of(pod.pod_class))
    return found
