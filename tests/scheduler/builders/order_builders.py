"""Workloads without pods in a tree of queues, and what each queue gets when all of them are served in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from queue_builders import CPU, MEMORY, queue

from model.queue import Cell
from model.workload import Workload, WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.order import Tournament, in_order
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.tree import tree_of

ORGS = tree_of(
    (queue("A"), queue("a1", "A"), queue("a2", "A"), queue("B"), queue("b1", "B"), queue("b2", "B"), queue("c"))
)
PAPER = {"a": {CPU: 1, MEMORY: 4}, "b": {CPU: 3, MEMORY: 1}}


def light(uid: str, name: str, **changes: object) -> Candidate:
    """A workload without pods."""
    fields = {"priority": 0, "pod_sets": (), "uid": uid, "eligible_seconds": 10.0} | changes
    return Candidate(WorkloadId.pod(f"ns/{uid}"), Workload(f"ns/{uid}", name, **fields), ())  # type: ignore[arg-type]


def drf(quota: Quota, needs: Mapping[str, Mapping[Cell, int]]) -> Counter[str]:
    """Progressive filling by the order: a unit task each, until nobody's next one fits. How many each got."""
    got: Counter[str] = Counter()
    stopped: set[str] = set()

    def share_of(name: str) -> Fraction:
        return quota.dominant_share(name).value / quota.tree.weight(name)

    given = [light(f"{name}-{at:03}", name) for name in needs for at in range(60)]
    for item in in_order(given, Tournament(share_of, quota.tree, stopped=stopped), 0.0):
        name = item.workload.queue
        if quota.short(name, needs[name]):
            stopped.add(name)
        else:
            quota.charge(name, needs[name])
            got[name] += 1
    return got
