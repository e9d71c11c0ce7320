"""Assumed node: the observation and usage that a NodeMetric and the Node's objects describe, for simulation.

Every average is the NodeMetric's, each window is full, and every control file holds what kubelet and kernel leave there
for best effort: no limit, the smallest weight, all CPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from agent.core.observe.knobs import (
    CPUSET_FILE,
    IDENTITY_FILE,
    MEMORY_QOS_FILES,
    PERIOD_US,
    PIDS_FILE,
    UNLIMITED,
    VENDOR_MEMORY_FILES,
)
from agent.core.observe.layout import Layout
from agent.core.observe.observation import (
    Absence,
    CgroupSample,
    Knob,
    KnobReading,
    Missing,
    NodeSample,
    Observation,
    Places,
    PodPlace,
    Value,
)
from agent.core.observe.usage import NodeUsage
from agent.core.observe.windows import Averages
from model.node import Node
from model.nodemetric import NodeMetric
from model.pod.pod import Pod
from model.qos import KubernetesQoS
from model.report import Usage
from model.resources import CPU
from model.strategy import ColocationStrategy, HostApplication
from model.topology import Processor, format_cpus

_MOST_CPUS = 8192
"""As many as Linux can be built for (arch/x86/Kconfig NR_CPUS); a typing error must not fill the memory."""
_UNTOUCHED: Mapping[str, Value] = {
    "cpu.max": UNLIMITED,
    "cpu.cfs_quota_us": UNLIMITED,
    "cpu.cfs_period_us": PERIOD_US,
    "cpu.weight": 1,
    "cpu.shares": 2,
    "cpu.idle": 0,
    "cpu.uclamp.min": 0,
    "cpu.uclamp.max": 100,
    "memory.high": UNLIMITED,
    "memory.min": 0,
    "memory.low": 0,
    "memory.oom.group": 0,
    "memory.max": UNLIMITED,
    "memory.limit_in_bytes": UNLIMITED,
}
_NOT_MEASURED = "not in the NodeMetric"


class AssumedNode(msgspec.Struct, frozen=True):
    """An untouched node. Each of its `pods` has a uid of its own (`identified`)."""

    layout: Layout
    node: Node
    pods: tuple[Pod, ...]
    processors: tuple[Processor, ...] = ()

    @property
    def places(self) -> Places:
        """The cgroup of each pod that is not finished, and of each container that stays: by its id, else its name."""
        found = {pod.uid: self._place(pod) for pod in self.pods if not pod.terminal}
        below = [path for place in found.values() for path in (place.path, *place.containers.values())]
        inside = (path for path in below if path.startswith(f"{self.layout.best_effort}/"))
        return Places(found, tuple(sorted(inside, key=lambda path: (path.count("/"), path))))

    def readings(self, knobs: Iterable[Knob]) -> dict[Knob, KnobReading]:
        """What the knobs hold before anybody wrote them; nothing of processes, since no object tells how many there
        are or may be."""
        return {knob: KnobReading(self._held(knob)) for knob in knobs if knob.file != PIDS_FILE}

    def observation(self, held: Mapping[Knob, KnobReading], used: NodeUsage | None, now: float) -> Observation:
        """What a first pass would see; no page cache, since nobody tells of it, and no pressure."""
        cpus = len(self.processors)
        missing = Missing(self.node.name, Absence.UNREADABLE, _NOT_MEASURED)
        node = NodeSample(0, used.node.last.memory_bytes, cpus) if used and cpus else missing
        return Observation(
            at_seconds=now,
            monotonic_seconds=now,
            node_sample=node,
            kubepods=_group(_pods_memory(used)) if used else missing,
            best_effort=_group(used.best_effort.last.memory_bytes) if used else missing,
            pods={pod.uid: self._sample(pod, used) for pod in self.pods if not pod.terminal},
            best_effort_cpus=cpus or None,
            knobs=held,
            node=self.node,
            listed=self.pods,
            places=self.places,
        )

    def _place(self, pod: Pod) -> PodPlace:
        path = self.layout.pod(pod.status.kubernetes_qos, pod.cgroup_uid or pod.uid)
        staying = (*pod.spec.containers, *(container for container in pod.spec.init_containers if container.sidecar))
        return PodPlace(path, {c.name: f"{path}/{pod.status.container_ids.get(c.name) or c.name}" for c in staying})

    def _sample(self, pod: Pod, used: NodeUsage | None) -> CgroupSample | Missing:
        measured = used.pods.get(pod.uid) if used else None
        if measured is None:
            return Missing(pod.key, Absence.UNREADABLE, _NOT_MEASURED)
        return CgroupSample(0, measured.last.memory_bytes)

    def _held(self, knob: Knob) -> Value | Missing:
        if knob.file == CPUSET_FILE:
            # On cgroup v2 an empty list is the parent's.
            return format_cpus(p.cpu for p in self.processors) if self.layout.version == 1 else ""
        absent = MEMORY_QOS_FILES if self.layout.version == 1 else VENDOR_MEMORY_FILES
        if knob.file in absent or knob.file == IDENTITY_FILE:
            return Missing(knob.file, Absence.GONE, "mainline kernels have no such file")
        return _UNTOUCHED.get(knob.file, Missing(knob.file, Absence.UNREADABLE, "no value is assumed"))


def identified(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods with a uid each: one that has none, or another pod's, is known by namespace and name."""
    taken: set[str] = set()
    found = []
    for pod in pods:
        if not pod.uid or pod.uid in taken:
            # Neither name may hold an underscore, so this is nobody else's. A static pod's cgroup has its own name.
            cgroup_uid = "" if pod.cgroup_uid == pod.uid else pod.cgroup_uid
            pod = msgspec.structs.replace(pod, uid=f"{pod.namespace}_{pod.name}", cgroup_uid=cgroup_uid)
        taken.add(pod.uid)
        found.append(pod)
    return tuple(found)


def processors(node: Node) -> tuple[Processor, ...]:
    """The capacity's whole CPUs from 0 on, in one socket, each a core of its own."""
    return tuple(Processor(cpu, cpu, 0, 0) for cpu in range(min(node.capacity[CPU] // 1000, _MOST_CPUS)))


def usage(
    metric: NodeMetric | None,
    pods: Iterable[Pod],
    host_applications: Iterable[HostApplication],
    strategy: ColocationStrategy,
    now: float,
) -> NodeUsage | None:
    """Use as the NodeMetric tells it; None where it does not tell the node's, or is too old to lend by.

    A pod that is not known to be below the best-effort root is online; one that is not listed is in `unlisted_system`
    too, and so is a host application that is not configured.
    """
    if metric is None or metric.updated_seconds is None or metric.node is None:
        return None
    if now - metric.updated_seconds > strategy.degrade_seconds:
        return None
    known, configured = tuple(pods), {application.name: application for application in host_applications}
    listed = {pod.key: pod.uid for pod in known if not pod.terminal}
    parts = _parts(metric, known, configured)
    unlisted = (
        *(pod.usage for pod in metric.pods if pod.key not in listed),
        *(host.usage for host in metric.host_applications if host.name not in configured),
    )
    system = metric.system or _less(metric.node, _sum([*parts.best_effort, *parts.online, *parts.outside]))
    return NodeUsage(
        at_seconds=metric.updated_seconds,
        node=_steady(metric.node),
        system=_steady(_sum([system, *parts.outside])),
        unlisted_system=_steady(_sum([system, *unlisted])),
        online=_steady(_sum(parts.online)),
        best_effort=_steady(_sum(parts.best_effort)),
        pods={listed[pod.key]: _steady(pod.usage) for pod in metric.pods if pod.key in listed},
        live_seconds=strategy.live_window_seconds,
        live_span_seconds=strategy.live_window_seconds,
        host_applications={
            host.name: _steady(host.usage) for host in metric.host_applications if host.name in configured
        },
    )


class _Parts(msgspec.Struct, frozen=True):
    """What is measured, by where it runs: below the best-effort root, in pods elsewhere, outside of all pods."""

    best_effort: tuple[Usage, ...]
    online: tuple[Usage, ...]
    outside: tuple[Usage, ...]


def _parts(metric: NodeMetric, pods: Iterable[Pod], configured: Mapping[str, HostApplication]) -> _Parts:
    batch = {pod.key for pod in pods if pod.status.kubernetes_qos is KubernetesQoS.BEST_EFFORT}
    below = {name for name, application in configured.items() if application.below_best_effort}
    hosts = metric.host_applications
    return _Parts(
        best_effort=(
            *(pod.usage for pod in metric.pods if pod.key in batch),
            *(host.usage for host in hosts if host.name in below),
        ),
        online=tuple(pod.usage for pod in metric.pods if pod.key not in batch),
        outside=tuple(host.usage for host in hosts if host.name not in below),
    )


def _steady(level: Usage) -> Averages:
    return Averages(level, level, level)


def _sum(parts: Iterable[Usage]) -> Usage:
    listed = tuple(parts)
    return Usage(sum(part.cpu_millis for part in listed), sum(part.memory_bytes for part in listed))


def _less(whole: Usage, part: Usage) -> Usage:
    return Usage(max(whole.cpu_millis - part.cpu_millis, 0), max(whole.memory_bytes - part.memory_bytes, 0))


def _pods_memory(used: NodeUsage) -> int:
    return used.online.last.memory_bytes + used.best_effort.last.memory_bytes


def _group(memory_bytes: int) -> CgroupSample:
    return CgroupSample(0, memory_bytes, charge_bytes=memory_bytes)
