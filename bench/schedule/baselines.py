"""Baselines of the scheduler, on the same clusters: a per-pod scheduler in plain Python, and bare NumPy.

The first is of the usual shape: for each pod filter every node, score every node that is left, take the best. The
second does nothing but one pass over the node array for each gang: divide, pick, subtract. No filter, no score, no
record, no explanation: no scheduler can be faster in NumPy.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np

from bench.schedule.decider import DecisionTimes
from model.node import Node, Taint, TaintEffect
from model.pod.pod import Pod
from model.resources import CPU, MEMORY, PODS
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.snapshot.snapshot import Amounts


class Greedy:
    """A pod at a time over node objects; a gang is its pods, undone where one has no place."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> None:
        self._nodes = [_GreedyNode(node) for node in nodes]
        by_name = {node.name: node for node in self._nodes}
        for pod in pods:
            by_name[pod.spec.node_name].add(dict(pod.spec.requests.amounts) | {PODS: 1}, 1)

    def run(self, candidates: Sequence[Candidate], seconds: float) -> DecisionTimes:
        """As many decisions as begin within `seconds`, at least one."""
        taken, pods, end = [], 0, time.perf_counter() + seconds
        for candidate in candidates:
            begun = time.perf_counter_ns()
            pods += self._gang(candidate)
            taken.append(time.perf_counter_ns() - begun)
            if time.perf_counter() > end:
                break
        return DecisionTimes(tuple(taken), pods)

    def _gang(self, candidate: Candidate) -> int:
        placed: list[tuple[_GreedyNode, dict[str, int]]] = []
        for pods, pod_class in zip(candidate.workload.pod_sets, candidate.classes, strict=True):
            request, selector = dict(pod_class.request), dict(pod_class.tolerance.node_selector)
            for _ in pods.uids:
                best = self._best(request, selector)
                if best is None:
                    for node, amounts in placed:
                        node.add(amounts, -1)
                    return 0
                best.add(request, 1)
                placed.append((best, request))
        return len(placed)

    def _best(self, request: dict[str, int], selector: dict[str, str]) -> _GreedyNode | None:
        feasible = [node for node in self._nodes if node.takes(request, selector)]
        return max(feasible, key=lambda node: node.score(request), default=None)


class _GreedyNode:
    def __init__(self, node: Node) -> None:
        self.name = node.name
        self._unschedulable = node.unschedulable
        self._labels, self._taints = node.labels, node.taints
        self._allocatable = dict(node.allocatable.amounts)
        self._used = dict.fromkeys(self._allocatable, 0)

    def takes(self, request: dict[str, int], selector: dict[str, str]) -> bool:
        """The filters: unschedulable, taints, selector, each resource."""
        kept_out = any(taint.effect is not TaintEffect.PREFER_NO_SCHEDULE for taint in self._untolerated())
        if self._unschedulable or kept_out:
            return False
        if any(self._labels.get(key) != value for key, value in selector.items()):
            return False
        used, allocatable = self._used, self._allocatable
        return all(used.get(name, 0) + amount <= allocatable.get(name, 0) for name, amount in request.items())

    def score(self, request: dict[str, int]) -> float:
        """LeastAllocated and BalancedAllocation over CPU and memory."""
        shares = []
        for name in (CPU, MEMORY):
            total = self._allocatable[name]
            shares.append((self._used[name] + request.get(name, 0)) / total if total else 1.0)
        least = sum(100 * (1 - share) for share in shares) / len(shares)
        return least + 100 * (1 - abs(shares[0] - shares[1]) / 2)

    def add(self, amounts: dict[str, int], count: int) -> None:
        for name, amount in amounts.items():
            self._used[name] = self._used.get(name, 0) + count * amount

    def _untolerated(self) -> Iterable[Taint]:
        return self._taints


class Bare:
    """Free amounts of CPU, memory and pods by node, and nothing else."""

    def __init__(self, free: Amounts) -> None:
        self._free = free.copy()

    def run(self, requests: Sequence[tuple[Amounts, int]]) -> DecisionTimes:
        """Each request (per member, and how many members) as one pass; `pods` counts what found room."""
        taken, pods = [], 0
        for request, members in requests:
            begun = time.perf_counter_ns()
            pods += self._one(request, members)
            taken.append(time.perf_counter_ns() - begun)
        return DecisionTimes(tuple(taken), pods)

    def _one(self, request: Amounts, members: int) -> int:
        free = self._free
        room = (free // request).min(axis=1)
        if members == 1:
            row = int(room.argmax())
            if room[row] < 1:
                return 0
            free[row] -= request
            return 1
        filled = room.clip(0, members).cumsum()
        last = int(filled.searchsorted(members))
        if last == len(filled):
            return 0
        counts = np.diff(filled[: last + 1], prepend=0)
        counts[-1] -= filled[last] - members
        free[: last + 1] -= counts[:, None] * request
        return members


def bare_requests(candidates: Sequence[Candidate], columns: Sequence[str]) -> list[tuple[Amounts, int]]:
    """Of gangs of one class; a resource that is not asked for counts as 1, since nothing divides by 0."""
    found = []
    for candidate in candidates:
        request = dict(candidate.classes[0].request)
        found.append((np.array([request.get(name, 1) for name in columns], np.int64), candidate.pending))
    return found
