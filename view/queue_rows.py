"""Rows of queues: a row a queue in the order of the tree, a cell a resource; and amounts in words.

Amounts are in base units (milli-CPU, bytes, devices) and include all queues below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from model import explain
from model.decision import Unit
from model.queue import ROOT_QUEUE, Cell, CellStanding, Loan, Queue, QueueAccount, QueuedJob, QueueStanding, QuotaCell
from model.resources import CPU, PODS


class QueueCellRow(msgspec.Struct, frozen=True):
    """How a queue stands in one resource; `nominal` and `maximum` are None where the queue says nothing, `headroom`
    where nothing bounds it.
    """

    resource: str
    flavor: str
    guaranteed: int
    nominal: int | None
    maximum: int | None
    fair_share: int
    used: int
    nominated: int
    borrowed: int
    lent: int
    demand: int
    headroom: int | None


class QueueRow(msgspec.Struct, frozen=True):
    """A queue; `depth` counts the queues above it, `position` is its place when queues were served last, 0: none."""

    name: str
    parent: str
    depth: int
    state: str
    weight: int
    pending_jobs: int
    running_jobs: int
    position: int
    dominant_share: float
    dominant_resource: str
    problem: str
    cells: tuple[QueueCellRow, ...]


class QueueReport(msgspec.Struct, frozen=True):
    """A queue as JSON tells it: how it stands, what it says of itself but for its quota, its loans, and who waits."""

    queue: QueueRow
    says: Queue
    loans: tuple[Loan, ...]
    jobs: tuple[QueuedJob, ...]
    waiting: int


def queue_report(account: QueueAccount) -> QueueReport:
    """As a row; cells are no keys of JSON."""
    (row,) = queue_rows([account.standing])
    says = msgspec.structs.replace(account.standing.queue, cells={})
    return QueueReport(row, says, account.loans, account.jobs, account.waiting)


def queue_rows(standings: Iterable[QueueStanding]) -> tuple[QueueRow, ...]:
    """A row a queue, those above before those below."""
    found = tuple(standings)
    depths = _depths({each.queue.name: each.queue.parent for each in found})
    return tuple(_row(each, depths[each.queue.name]) for each in found)


def telling_cells(standing: QueueStanding) -> Iterator[tuple[Cell, CellStanding]]:
    """Cells that the queue's quota names or its work touches; the number of pods only where its quota names it."""
    for cell, found in sorted(standing.cells.items()):
        written = standing.queue.cells.get(cell, QuotaCell()) != QuotaCell()
        moved = any((found.used, found.nominated, found.demand, found.borrowed, found.lent))
        if written or (moved and cell[1] != PODS):
            yield cell, found


def shown(resource: str, amount: int) -> str:
    """An amount as a manifest has it: `1500m`, `2Gi`, `8`."""
    if resource == CPU:
        return explain.amount(amount, Unit.MILLI_CPU)
    in_bytes = resource.endswith(("memory", "storage")) or resource.startswith("hugepages-")
    return explain.amount(amount, Unit.BYTES if in_bytes else Unit.NUMBER)


def cell_name(cell: Cell) -> str:
    """The resource, of its flavour where it has one."""
    flavor, resource = cell
    return f"{resource} of {flavor}" if flavor else resource


def amounts_text(amounts: Mapping[str, int]) -> str:
    """`2 cpu, 8 nvidia.com/gpu`, without the number of pods; `nothing` where all are 0."""
    told = [f"{shown(name, amount)} {name}" for name, amount in sorted(amounts.items()) if amount and name != PODS]
    return ", ".join(told) or "nothing"


def _depths(parents: Mapping[str, str]) -> dict[str, int]:
    """How many queues are above each; a circle ends where it closes."""
    depths: dict[str, int] = {}
    for name in parents:
        above: list[str] = []
        at = parents[name]
        while at != ROOT_QUEUE and at in parents and at not in above and at != name:
            above.append(at)
            at = parents[at]
        depths[name] = len(above)
    return depths


def _row(standing: QueueStanding, depth: int) -> QueueRow:
    queue = standing.queue
    return QueueRow(
        queue.name,
        queue.parent,
        depth,
        queue.state.value,
        queue.weight,
        standing.pending_jobs,
        standing.running_jobs,
        standing.position,
        standing.dominant_share,
        standing.dominant_resource,
        standing.problem,
        tuple(_cell(cell, found) for cell, found in telling_cells(standing)),
    )


def _cell(cell: Cell, found: CellStanding) -> QueueCellRow:
    return QueueCellRow(
        cell[1],
        cell[0],
        found.guaranteed,
        found.nominal,
        found.maximum,
        found.share,
        found.used,
        found.nominated,
        found.borrowed,
        found.lent,
        found.demand,
        found.headroom,
    )
