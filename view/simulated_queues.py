"""Queues, jobs and evictions of `sublet simulate cluster`, as docs/simulate-cluster.md describes them.

Numbers are as a manifest has them: CPUs, bytes, devices; whole ones are integers, others are rounded to a millionth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TypeAlias

import msgspec

from model.queue import NO_FLAVOR, ROOT_QUEUE, Cell, CellStanding, QueueStanding, QuotaCell
from model.resources import CPU, PODS
from view.table import Table

Number: TypeAlias = int | float
Numbers: TypeAlias = Mapping[str, Number]
"""By resource; one of a flavour is `flavour/resource`."""
PARTS = 10**9
"""Amounts of standings are in these parts of a base unit, so that shares are exact in all digits that are told."""
_DIGITS = 6
NOTHING: Mapping[str, Mapping[Cell, int]] = {}


class QueueOut(msgspec.Struct, frozen=True, rename="camel"):
    """A queue; amounts include all queues below.

    `nominal` is its own, above which it borrows: its fair share where its quota does not say it. `used` and `allocated`
    are what its pods have, `nominated` is kept for those that wait for victims and counts as borrowed and in shares,
    `lendable` is what others may have of its own, `pending` what waits. `weighted_share` is `dominant_share` by weight.
    """

    name: str
    parent: str
    state: str
    guaranteed: Numbers
    nominal: Numbers
    used: Numbers
    nominated: Numbers
    borrowed: Numbers
    lent: Numbers
    lendable: Numbers
    fair_share: Numbers
    allocated: Numbers
    pending: Numbers
    dominant_share: Number
    weighted_share: Number
    pending_jobs: int
    running_jobs: int
    problem: str


class JobOut(msgspec.Struct, frozen=True):
    """A gang, a template or a pod of any scheduler's; `reason` is the code of why it waits, else empty."""

    name: str
    queue: str
    state: str
    reason: str


class WorkloadOut(msgspec.Struct, frozen=True):
    """What became of so many pods of a job that waited: admitted, preempting or pending; `flavors` by resource."""

    name: str
    queue: str
    outcome: str
    count: int
    flavors: Mapping[str, str]
    reason: str


class PreemptionOut(msgspec.Struct, frozen=True):
    """A job that loses pods to another; `queue` is the victim's."""

    victim: str
    queue: str
    preemptor: str
    reason: str


class ServedOut(msgspec.Struct, frozen=True):
    """A job of a queue that was tried; `cycle` counts from 1."""

    cycle: int
    queue: str
    workload: str


class WhatIfOut(msgspec.Struct, frozen=True):
    """So many more nodes like one that is given, and the jobs that run with them alone."""

    nodes: int
    like: str
    workloads: tuple[str, ...]


def queue_outs(
    standings: Iterable[QueueStanding],
    waiting: Mapping[str, Mapping[Cell, int]] = NOTHING,
    *,
    proportion: bool = False,
) -> tuple[QueueOut, ...]:
    """Each queue, of standings in `PARTS`, with the resources that any of them has to do with.

    With `proportion` nominal amounts are ignored. `waiting` is what waits in each queue and below it, as much as it is:
    a demand ends at what the queue may have. The root stands for what no queue has of its own: it is told only where it
    lends.
    """
    found = [each for each in standings if _matters(each)]
    cells = sorted({cell for each in found for cell in _telling(each)})
    return tuple(_out(each, cells, waiting.get(each.queue.name, {}), proportion) for each in found)


def number(resource: str, amount: int) -> Number:
    """An amount in parts of base units as a manifest has it."""
    return rounded(Fraction(amount, PARTS * (1000 if resource == CPU else 1)))


def rounded(value: Fraction | float) -> Number:
    """An integer where it is whole, else rounded to a millionth."""
    found = round(float(value), _DIGITS)
    return int(found) if found == int(found) else found


def queue_table(queues: Iterable[QueueOut]) -> Table:
    """A row a queue and resource."""
    head = ("queue", "resource", "guaranteed", "nominal", "fair share", "used", "borrowed", "lent", "pending")
    rows = [
        (one.name or "(cluster)", name, *(str(each.get(name, "-")) for each in _shown(one)))
        for one in queues
        for name in one.used
    ]
    return Table("queues", head, tuple(rows))


def _shown(one: QueueOut) -> tuple[Numbers, ...]:
    return one.guaranteed, one.nominal, one.fair_share, one.used, one.borrowed, one.lent, one.pending


def _matters(standing: QueueStanding) -> bool:
    """Somebody wrote it or it has work; the root where it lends."""
    if standing.queue.name == ROOT_QUEUE:
        return any(cell.lent for cell in standing.cells.values())
    return bool(standing.queue.source or standing.pending_jobs or standing.running_jobs or standing.problem)


def _telling(standing: QueueStanding) -> Iterable[Cell]:
    for cell, found in standing.cells.items():
        written = standing.queue.cells.get(cell, QuotaCell()) != QuotaCell()
        if written or (cell[1] != PODS and any((found.used, found.nominated, found.demand, found.lent))):
            yield cell


def _out(standing: QueueStanding, cells: Iterable[Cell], waiting: Mapping[Cell, int], proportion: bool) -> QueueOut:
    queue = standing.queue
    found = {cell: standing.cells.get(cell, CellStanding()) for cell in cells}
    own = {cell: _own(each, proportion) for cell, each in found.items()}
    taken = {cell: each.used + each.nominated for cell, each in found.items()}
    used = _numbers({cell: each.used for cell, each in found.items()})
    root = queue.name == ROOT_QUEUE
    kept = {cell: _kept(queue.cells.get(cell, QuotaCell()), own[cell], each) for cell, each in found.items()}
    return QueueOut(
        name=queue.name,
        parent=queue.parent,
        state=queue.state.value,
        guaranteed=_numbers({cell: each.guaranteed for cell, each in found.items()}),
        nominal=_numbers(own),
        used=used,
        nominated=_numbers({cell: each.nominated for cell, each in found.items()}),
        borrowed=_numbers({cell: 0 if root else each.borrowed for cell, each in found.items()}),
        lent=_numbers({cell: each.lent for cell, each in found.items()}),
        lendable=_numbers({cell: max(0, own[cell] - max(taken[cell], kept[cell])) for cell in found}),
        fair_share=_numbers({cell: each.share for cell, each in found.items()}),
        allocated=used,
        pending=_numbers({cell: PARTS * waiting.get(cell, 0) for cell in found}),
        dominant_share=rounded(standing.dominant_share),
        weighted_share=rounded(standing.weighted_share),
        pending_jobs=standing.pending_jobs,
        running_jobs=standing.running_jobs,
        problem=standing.problem,
    )


def _own(found: CellStanding, proportion: bool) -> int:
    return found.share if proportion or found.nominal is None else found.nominal


def _kept(quota: QuotaCell, own: int, found: CellStanding) -> int:
    """What it lends to nobody even where it is idle."""
    return max(found.guaranteed, 0 if quota.lending_limit is None else own - quota.lending_limit)


def _numbers(amounts: Mapping[Cell, int]) -> Numbers:
    return {
        resource if flavor == NO_FLAVOR else f"{flavor}/{resource}": number(resource, amount)
        for (flavor, resource), amount in amounts.items()
    }
