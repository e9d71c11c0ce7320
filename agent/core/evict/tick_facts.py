"""Eviction facts of one tick, complete and fresh, and what each pod's end would free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from agent.core.evict.eviction_request import RUNNING_BATCH_CPU, USED_CPU, USED_MEMORY
from agent.core.observe.observation import CgroupSample, Missing, NodeSample, Observation
from agent.core.observe.usage import Averages, NodeUsage, running_batch_millis
from model.decision import Decision, Unit
from model.node import Node
from model.pod.pod import Pod
from model.qos import QoSClass
from model.report import EvictionCost
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MID_CPU
from model.strategy import EvictionStrategy

_CPU = (USED_CPU, RUNNING_BATCH_CPU, CPU, BATCH_CPU, MID_CPU)
_KILL_SECONDS = 1.0
_KILL_SECONDS_PER_GB = 0.11
"""Measured from SIGKILL until the memory is free again: 0.11 s for 1 GB, 0.31 s for 3 GB (reference: kernel)."""


class TickFacts(msgspec.Struct, frozen=True):
    """Facts that are complete and fresh; `lent` are what is lent by resource name, where that is told.

    `shrinks`: memory is reclaimed of best-effort pods, and evictions that can wait wait for it.
    """

    node: Node
    pods: tuple[Pod, ...]
    observation: Observation
    usage: NodeUsage
    strategy: EvictionStrategy
    best_effort_millis: int | None
    lent: Mapping[str, Decision]
    costs: Mapping[str, EvictionCost]
    shrinks: bool = False

    def cpu_millis(self, averages: Averages) -> int:
        """The average of the CPU rules: over the shortest window kept that is at least as long as the one asked for."""
        window = self.strategy.cpu_window_seconds
        if window is None:
            return averages.last.cpu_millis
        return (averages.live if window <= self.usage.live_span_seconds else averages.aggregate).cpu_millis

    def freed_by(self, pod: Pod, resource: str) -> int:
        """What the pod's end frees of a resource (see Order); 0 of what is not known."""
        if pod.terminal:
            return 0
        if resource == USED_MEMORY:
            return memory_bytes(self.observation, pod.uid)
        if resource == USED_CPU:
            averages = self.usage.pods.get(pod.uid)
            return self.cpu_millis(averages) if averages else 0
        if resource == RUNNING_BATCH_CPU:
            return running_batch_millis(pod)
        return pod.spec.requests[resource]

    def freed_together(self, pods: Iterable[Pod], resource: str) -> int:
        return sum(self.freed_by(pod, resource) for pod in pods)


def memory_bytes(observation: Observation, uid: str) -> int:
    """Memory of the pod that cannot be dropped, of the kernel for it too; 0 where it was not read.

    Caches of the kernel that cannot be dropped may be anybody's who has as much of them.
    """
    return held_bytes(observation, observation.pods.get(uid))


def held_bytes(observation: Observation, sample: CgroupSample | Missing | None) -> int:
    """The same of a cgroup's sample."""
    node = observation.node_sample
    if not isinstance(sample, CgroupSample):
        return 0
    pinned = min(sample.kernel_caches_bytes, node.pinned_bytes) if isinstance(node, NodeSample) else 0
    return sample.ends_bytes + pinned


def exceeds_limit(pod: Pod, held_bytes: int) -> bool:
    """Whether the pod holds more memory than its own batch limit: it took that before the limit could be written."""
    everyone = (*pod.spec.containers, *pod.spec.init_containers)
    limited = bool(everyone) and all(container.limits[BATCH_MEMORY] for container in everyone)
    return limited and held_bytes > pod.spec.limits[BATCH_MEMORY]


def may_hurry(pod: Pod) -> bool:
    """Whether we may ask for its end within a moment once memory is short: best effort's alone, and no static pod."""
    return pod.colocation.qos_label is QoSClass.BE and pod.cgroup_uid in ("", pod.uid)


def ending_seconds(grace_seconds: float, held_bytes: int) -> float:
    """How long until a pod that was told to end has given its memory back."""
    return grace_seconds + _KILL_SECONDS + _KILL_SECONDS_PER_GB * held_bytes / 1e9


def unit_of(resource: str) -> Unit:
    """Every CPU is counted in milli-CPU, all else here in bytes."""
    return Unit.MILLI_CPU if resource in _CPU else Unit.BYTES
