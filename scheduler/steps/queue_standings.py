"""Standings of queues: the books of a turn with the jobs that wait and run, as people, status and metrics are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, Cell, Loan, QueueStanding, QuotaCell
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import ClaimKind
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.ledger.queue_book import add
from scheduler.core.queueing.queue_refusal import amounts_of
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.shares import Use, fair_shares, known_cells
from scheduler.core.queues.standing import QueueCounts
from scheduler.core.queues.standing import standings as of_books
from scheduler.core.queues.tree import QueueTree, tree_of

_COUNTED = (ClaimKind.NOMINATED, ClaimKind.ADMITTED)
"""What is kept for a workload by these is in what its queue uses, or has nominated."""


def standings(
    quota: Quota, ledger: Ledger, waiting: Iterable[Candidate], served: Iterable[str] = (), parts: int = 1
) -> tuple[QueueStanding, ...]:
    """The root, then all queues, each after its parent; `served` is the order in which queues were served last.

    With `parts` amounts are in so many parts of a base unit: decisions share out whole units, and who wants to know
    what a third of ten devices is asks for more of them.
    """
    tree = quota.tree
    candidates = tuple(waiting)
    admitted = {claim.subject for claim in ledger.claims(ClaimKind.ADMITTED)}
    pending = Counter(each.workload.queue for each in candidates if each.subject not in admitted)
    places = {queue: place for place, queue in enumerate(served, 1) if pending[queue]}
    claimed = ledger.claimed(ClaimKind.NOMINATED)
    nominated: Use = {name: quota.counted(claimed.cells(name)) for name in tree.top_down}
    kept = Counter(claim.queue for claim in ledger.claims(ClaimKind.NOMINATED))
    counts = QueueCounts(
        _jobs_upwards(tree, pending), _jobs_upwards(tree, _running(tree, ledger)), places, _jobs_upwards(tree, kept)
    )
    demand: Use = own_demand(tree.top_down, ledger, candidates, quota.cells)
    if parts != 1:
        nominated, demand = _times(nominated, parts), _times(demand, parts)
        quota = _finer(quota, demand, parts)
    return tuple(of_books(quota, _upwards(tree, nominated), demand, counts).values())


def _finer(quota: Quota, demand: Use, parts: int) -> Quota:
    """The same books in parts of base units; `demand` is in these already."""
    queues = (
        msgspec.structs.replace(queue, cells={cell: _quota_times(found, parts) for cell, found in queue.cells.items()})
        for queue in quota.tree.queues.values()
    )
    tree, cells = tree_of(queues), known_cells(quota.tree, quota.capacity, demand.values())
    capacity = _times({"": quota.capacity}, parts)[""]
    names = (ROOT_QUEUE, *tree.top_down)
    use = _times({name: {cell: quota.used(name, cell) for cell in cells} for name in names}, parts)
    return Quota(tree, capacity, use, fair_shares(tree, capacity, demand, quota.rules), quota.rules)


def _times(amounts: Use, parts: int) -> dict[str, Mapping[Cell, int]]:
    return {name: {cell: parts * amount for cell, amount in own.items()} for name, own in amounts.items()}


def _quota_times(quota: QuotaCell, parts: int) -> QuotaCell:
    """All but the weight."""
    amounts = {name: getattr(quota, name) for name in quota.__struct_fields__ if name != "weight"}
    told = {name: parts * amount for name, amount in amounts.items() if amount is not None}
    return msgspec.structs.replace(quota, **told)


def loans(quota: Quota, queue: str) -> tuple[Loan, ...]:
    """What the queue, or one below it, has of another's own, and what others have of theirs; by cell, then by name."""
    inside = {name for name in quota.tree.top_down if queue in quota.tree.path(name)}
    found = []
    for cell in known_cells(quota.tree, quota.capacity, quota.shares.values()):
        for (lender, borrower), amount in sorted(quota.lending(cell).loans.items()):
            if (lender in inside) != (borrower in inside):
                found.append(Loan(lender, borrower, cell, amount))
    return tuple(found)


def _running(tree: QueueTree, ledger: Ledger) -> Mapping[str, int]:
    """Jobs with a pod on a node, or admitted without one yet; where there is but one queue nobody keeps count. Those
    that no queue governs name none: they are jobs of the default one, whose amounts do not count there.
    """
    if ledger.book is None:
        return Counter(queue for queue, _ in {(charge.queue, charge.job) for charge in ledger.charges()})
    found = Counter({name: ledger.book.running(name) for name in tree.top_down})
    admitted = ledger.claims(ClaimKind.ADMITTED)
    found.update(claim.queue for claim in admitted if not ledger.members_by_node(claim.subject))
    found[DEFAULT_QUEUE] += ledger.book.running(ROOT_QUEUE)
    return found


def own_demand(
    queues: Iterable[str], ledger: Ledger, waiting: Iterable[Candidate], counted: Collection[Cell] | None = None
) -> dict[str, dict[Cell, int]]:
    """What each queue's own work uses, has nominated and waits for; what is kept for a workload waits no more.

    `counted` are the cells of which it is told, None: all.
    """
    used = {name: _of(ledger.counted(name), counted) for name in queues}
    for candidate in waiting:
        queue = candidate.governed_by
        if queue in used and all(ledger.claim(kind, candidate.subject) is None for kind in _COUNTED):
            add(used[queue], _of(amounts_of(candidate), counted))
    return used


def _of(amounts: Mapping[Cell, int], counted: Collection[Cell] | None) -> dict[Cell, int]:
    return {cell: amount for cell, amount in amounts.items() if counted is None or cell in counted}


def _upwards(tree: QueueTree, amounts: Use) -> Use:
    """Amounts of queues, those of queues below included."""
    total: dict[str, dict[Cell, int]] = {}
    for name, own in amounts.items():
        for node in tree.path(name) if own else ():
            add(total.setdefault(node, {}), own)
    return total


def _jobs_upwards(tree: QueueTree, jobs: Mapping[str, int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, number in jobs.items():
        for node in tree.path(name):
            total[node] += number
    return total
