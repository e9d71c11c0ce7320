"""Use of a simulated node at a moment: online work by a model, pods by their requests. Pure.

Online work (everything but lent pods) comes from a daily curve or a trace, as a share of the node's capacity; what of
it the node's own online pods do not use is the system's. Lent pods use a share of what they request, as far as the
machine has it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from model.pod.pod import Pod
from model.qos import PriorityBand
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY

DAY_SECONDS = 86_400.0
_SYSTEM_LEAST = 0.02
_LENT = {
    PriorityBand.MID: (MID_CPU, MID_MEMORY),
    PriorityBand.BATCH: (BATCH_CPU, BATCH_MEMORY),
    PriorityBand.FREE: (BATCH_CPU, BATCH_MEMORY),
}


class UsageShare(msgspec.Struct, frozen=True):
    """Of CPU and memory, 0 to 1; of a request it may be more."""

    cpu_ratio: float
    memory_ratio: float


class OnlineLoad(Protocol):
    """Online work of each node over time."""

    def at(self, index: int, seconds: float) -> UsageShare:
        """Of node `index`, `seconds` of the model after its start."""


class DailyCurve:
    """Quiet at four in the morning, busy twelve hours later; nodes differ a little. The model starts at midnight."""

    def __init__(self, mean_ratio: float = 0.3, swing_ratio: float = 0.2, memory_ratio: float = 0.4) -> None:
        self._mean = mean_ratio
        self._swing = swing_ratio
        self._memory = memory_ratio

    def at(self, index: int, seconds: float) -> UsageShare:
        own = _spread(index)
        hour = (seconds / DAY_SECONDS * 24 + own) % 24
        cpu = self._mean * (1 + 0.2 * own) - self._swing * math.cos((hour - 4) / 12 * math.pi)
        return UsageShare(max(cpu, 0.0), self._memory * (1 + 0.1 * own))


class TraceSeries(msgspec.Struct, frozen=True):
    """One machine of a trace: ascending times from 0, and its shares from each time on."""

    seconds: Sequence[float]
    shares: Sequence[UsageShare]


class TraceLoad:
    """Machines of a trace in turn; each one's trace begins again at its end."""

    def __init__(self, machines: Sequence[TraceSeries]) -> None:
        self._machines = machines

    def at(self, index: int, seconds: float) -> UsageShare:
        series = self._machines[index % len(self._machines)]
        span = series.seconds[-1]
        # Nodes that play the same machine do so at different times, or the cluster would breathe as one.
        offset = index // len(self._machines) * 3_600.0
        moment = (seconds + offset) % span if span else 0.0
        return series.shares[bisect_right(series.seconds, moment) - 1]


class Worker(msgspec.Struct, frozen=True):
    """A running pod and what it uses of its requests."""

    pod: Pod
    share: UsageShare


class NodeUse(msgspec.Struct, frozen=True):
    """`system` is the node's use outside all pods; `pods` by uid."""

    node: Usage
    system: Usage
    pods: Mapping[str, Usage]


def node_use(capacity: Usage, online: UsageShare, workers: Iterable[Worker]) -> NodeUse:
    """Use of a node of that capacity and of each pod on it."""
    workers = tuple(workers)
    own = {each.pod.uid: _wanted(each) for each in workers if each.pod.colocation.band not in _LENT}
    lent = {each.pod.uid: _wanted(each) for each in workers if each.pod.colocation.band in _LENT}
    background = _part(capacity, online)
    least = _part(capacity, UsageShare(_SYSTEM_LEAST, _SYSTEM_LEAST))
    pods_use = _sum(own.values())
    system = Usage(
        max(background.cpu_millis - pods_use.cpu_millis, least.cpu_millis),
        max(background.memory_bytes - pods_use.memory_bytes, least.memory_bytes),
    )
    room = _minus(capacity, _sum((pods_use, system)))
    lent = _fitted(lent, room)
    pods = own | lent
    total = _sum((system, *pods.values()))
    return NodeUse(
        Usage(min(total.cpu_millis, capacity.cpu_millis), min(total.memory_bytes, capacity.memory_bytes)), system, pods
    )


def _wanted(worker: Worker) -> Usage:
    cpu, memory = _LENT.get(worker.pod.colocation.band, (CPU, MEMORY))
    requests = worker.pod.spec.requests
    asked = Usage(requests[cpu] or requests[CPU], requests[memory] or requests[MEMORY])
    return _part(asked, worker.share)


def _fitted(lent: Mapping[str, Usage], room: Usage) -> dict[str, Usage]:
    """All the same part of what they want, where there is not room for all. Memory cannot be taken from a process."""
    wanted = sum(use.cpu_millis for use in lent.values())
    part = min(room.cpu_millis / wanted, 1.0) if wanted else 1.0
    return {uid: Usage(int(use.cpu_millis * part), use.memory_bytes) for uid, use in lent.items()}


def _part(whole: Usage, share: UsageShare) -> Usage:
    return Usage(int(whole.cpu_millis * share.cpu_ratio), int(whole.memory_bytes * share.memory_ratio))


def _sum(uses: Iterable[Usage]) -> Usage:
    cpu = memory = 0
    for use in uses:
        cpu, memory = cpu + use.cpu_millis, memory + use.memory_bytes
    return Usage(cpu, memory)


def _minus(one: Usage, other: Usage) -> Usage:
    return Usage(max(one.cpu_millis - other.cpu_millis, 0), max(one.memory_bytes - other.memory_bytes, 0))


def _spread(index: int) -> float:
    """-1 to 1, the same for the same node; neighbours differ (golden ratio)."""
    return (index * 0.618_033_988_75) % 1.0 * 2 - 1
