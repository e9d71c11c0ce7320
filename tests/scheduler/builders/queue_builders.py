"""Queues, and the books of a moment, valid by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.queue import ROOT_QUEUE, Cell, Queue, QuotaCell
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.shares import PLAIN_RULES, ShareRules, fair_shares
from scheduler.core.queues.tree import QueueTree, tree_of

CPU: Cell = ("", "cpu")
MEMORY: Cell = ("", "memory")
GPU: Cell = ("", "nvidia.com/gpu")


def queue(
    name: str = "a",
    parent: str = ROOT_QUEUE,
    weight: int = 1,
    cpu: QuotaCell | None = None,
    gpu: QuotaCell | None = None,
    **fields: object,
) -> Queue:
    """A queue with quota of CPU, or of GPUs, or without any."""
    cells = {cell: quota for cell, quota in ((CPU, cpu), (GPU, gpu)) if quota is not None}
    return Queue(name=name, parent=parent, weight=weight, cells=cells, **fields)  # type: ignore[arg-type]


def cell(guaranteed: int = 0, nominal: int | None = None, maximum: int | None = None, **limits: int) -> QuotaCell:
    """A quota; `limits` are borrowing_limit and lending_limit."""
    return QuotaCell(guaranteed, nominal, maximum, **limits)


def inclusive(tree: QueueTree, own: Mapping[str, Mapping[Cell, int]]) -> dict[str, dict[Cell, int]]:
    """What each queue's own work uses, summed up along the paths."""
    total: dict[str, dict[Cell, int]] = {}
    for name, amounts in own.items():
        for node in tree.path(name):
            for each, amount in amounts.items():
                here = total.setdefault(node, {})
                here[each] = here.get(each, 0) + amount
    return total


def books(
    queues: Iterable[Queue],
    capacity: Mapping[Cell, int] | int,
    used: Mapping[str, Mapping[Cell, int] | int] | None = None,
    pending: Mapping[str, Mapping[Cell, int] | int] | None = None,
    rules: ShareRules = PLAIN_RULES,
) -> Quota:
    """The books of these queues; a bare number is an amount of CPU; what is pending is demanded beside what is used."""
    tree, own, waits = tree_of(queues), _amounts(used), _amounts(pending)
    room = {CPU: capacity} if isinstance(capacity, int) else capacity
    demand = {
        name: {
            each: own.get(name, {}).get(each, 0) + waits.get(name, {}).get(each, 0)
            for each in {*own.get(name, {}), *waits.get(name, {})}
        }
        for name in {*own, *waits}
    }
    return Quota(tree, room, inclusive(tree, own), fair_shares(tree, room, demand, rules), rules)


def _amounts(given: Mapping[str, Mapping[Cell, int] | int] | None) -> dict[str, Mapping[Cell, int]]:
    return {name: {CPU: of} if isinstance(of, int) else of for name, of in (given or {}).items()}
