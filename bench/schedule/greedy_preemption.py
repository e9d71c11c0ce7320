"""kube-scheduler's own preemption in plain Python: a pod at a time, every node tried, victims put back one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from model.node import Node
from model.pod.pod import Pod
from model.resources import CPU, MEMORY


class _Resident(msgspec.Struct, frozen=True):
    priority: int
    started: float
    amounts: tuple[int, ...]


class GreedyPreemption:
    """CPU and memory only; what a plan takes away is not put back, so that plans follow each other."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        self._free = {node.name: [node.allocatable[CPU], node.allocatable[MEMORY]] for node in nodes}
        self._pods: dict[str, list[_Resident]] = {name: [] for name in self._free}
        for pod in pods:
            amounts = (pod.spec.requests[CPU], pod.spec.requests[MEMORY])
            self._pods[pod.spec.node_name].append(_Resident(pod.spec.priority, pod.status.started_seconds, amounts))
            self._take(pod.spec.node_name, amounts, 1)

    def preempt(self, request: Mapping[str, int], members: int, priority: int) -> int:
        """Make room for the members one after another; returns how many victims there are."""
        wanted, victims = (request[CPU], request[MEMORY]), 0
        for _ in range(members):
            best = self._best(wanted, priority)
            if best is None:
                break
            name, gone = best
            for pod in gone:
                self._pods[name].remove(pod)
                self._take(name, pod.amounts, -1)
            self._take(name, wanted, 1)
            victims += len(gone)
        return victims

    def _best(self, wanted: tuple[int, ...], priority: int) -> tuple[str, list[_Resident]] | None:
        found = []
        for name in self._free:
            gone = self._victims(name, wanted, priority)
            if gone is not None:
                ranks = [pod.priority for pod in gone]
                found.append(((max(ranks, default=-1), sum(ranks), len(gone)), name, gone))
        return min(found, key=lambda each: each[0])[1:] if found else None

    def _victims(self, name: str, wanted: tuple[int, ...], priority: int) -> list[_Resident] | None:
        """All of lower priority go, then the most important come back while the pod still fits."""
        lower = [pod for pod in self._pods[name] if pod.priority < priority]
        free = [have + sum(pod.amounts[i] for pod in lower) for i, have in enumerate(self._free[name])]
        if any(have < want for have, want in zip(free, wanted, strict=True)):
            return None
        gone = []
        for pod in sorted(lower, key=lambda each: (-each.priority, each.started)):
            if all(have - own >= want for have, own, want in zip(free, pod.amounts, wanted, strict=True)):
                free = [have - own for have, own in zip(free, pod.amounts, strict=True)]
            else:
                gone.append(pod)
        return gone

    def _take(self, name: str, amounts: tuple[int, ...], count: int) -> None:
        for index, amount in enumerate(amounts):
            self._free[name][index] -= count * amount
