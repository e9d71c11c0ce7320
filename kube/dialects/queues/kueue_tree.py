"""Kueue's cohorts as inner queues: what a cohort has is what its members bring and what it has beside them.

Kueue's arithmetic of a cohort (subtree quota, local quota, available) is that of the tree of queues with these
amounts: its nominal is the sum of all below it and its own, its limits count from there, and a cohort without a
parent has no more than that. A cohort that no object defines is one without a word of its own.
Source: kueue pkg/cache/scheduler/resource_node.go; https://kueue.sigs.k8s.io/docs/concepts/cohort/.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from kube.dialects.queues.kueue import COHORT, COHORT_PREFIX, WEIGHT_ONE, flavors_of
from model.queue import ROOT_QUEUE, Cell, Queue, QuotaCell


def with_cohorts(queues: Iterable[Queue], flavors: Collection[str]) -> tuple[Queue, ...]:
    """Queues as a tree can take them: cohorts have their sums, those that are only named are there, and ClusterQueues
    that name a flavour which is not among `flavors` say that nothing can start in them. Others stay as they are.
    """
    known = {queue.name: queue for queue in queues}
    for queue in tuple(known.values()):
        if queue.parent.startswith(COHORT_PREFIX):
            known.setdefault(queue.parent, Queue(queue.parent, weight=WEIGHT_ONE))
    below: dict[str, list[str]] = {}
    for name, queue in known.items():
        below.setdefault(queue.parent, []).append(name)
    sums: dict[str, Mapping[Cell, int]] = {}
    found = (
        _cohort(queue, _sum(queue.name, known, below, sums, ()))
        if queue.name.startswith(COHORT_PREFIX)
        else _with_flavors(queue, flavors)
        for queue in known.values()
    )
    return tuple(map(_beside_others, found))


def _beside_others(queue: Queue) -> Queue:
    """Below the root are queues of all APIs, whose weights are whole numbers; in a cohort all are Kueue's."""
    if queue.parent != ROOT_QUEUE or not (queue.flavor_groups or queue.name.startswith(COHORT_PREFIX)):
        return queue
    return msgspec.structs.replace(queue, weight=max(1, queue.weight // WEIGHT_ONE))


def _cohort(queue: Queue, total: Mapping[Cell, int]) -> Queue:
    """With the sums; one without a parent has no more than these."""
    top = queue.parent == ROOT_QUEUE
    cells = {}
    for cell, amount in total.items():
        own = queue.cells.get(cell, QuotaCell())
        most = amount if top else None
        cells[cell] = QuotaCell(0, amount, most, own.borrowing_limit, own.lending_limit)
    return msgspec.structs.replace(queue, cells=cells)


def _sum(
    name: str,
    known: Mapping[str, Queue],
    below: Mapping[str, list[str]],
    sums: dict[str, Mapping[Cell, int]],
    passed: tuple[str, ...],
) -> Mapping[Cell, int]:
    """Nominal of a queue and of all below it; parents that form a circle are told by the tree, and end here."""
    if name in sums or name in passed:
        return sums.get(name, {})
    total: dict[Cell, int] = {cell: quota.nominal or 0 for cell, quota in known[name].cells.items()}
    for child in below.get(name, ()):
        for cell, amount in _sum(child, known, below, sums, (*passed, name)).items():
            total[cell] = total.get(cell, 0) + amount
    sums[name] = total
    return total


def _with_flavors(queue: Queue, flavors: Collection[str]) -> Queue:
    missing = [name for name in flavors_of(queue) if name not in flavors]
    if not missing:
        return queue
    told = f'ResourceFlavor "{missing[0]}" does not exist; create it, or take it out of spec.resourceGroups'
    return msgspec.structs.replace(queue, inactive=f"{queue.source}: {told}")


def cohort_name(queue: str) -> str:
    """The Cohort that a queue stands for, empty for any other queue."""
    return queue.removeprefix(COHORT_PREFIX) if queue.startswith(COHORT_PREFIX) else ""


def kind_of(queue: str) -> str:
    """What messages call it."""
    return f"{COHORT} {cohort_name(queue)}" if queue.startswith(COHORT_PREFIX) else f"queue {queue}"
