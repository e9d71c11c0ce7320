"""Observation: raw counters and levels of one pass over the node, with one timestamp, absences included."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from model.node import Node
from model.pod.pod import Pod
from model.report import Pressure
from model.resources import CPU, MEMORY, ResourceVector


class Absence(StrEnum):
    """Why there is no reading."""

    GONE = "gone"
    UNREADABLE = "unreadable"


class Missing(msgspec.Struct, frozen=True, tag="missing"):
    """No reading from `path`, and why."""

    path: str
    absence: Absence
    detail: str = ""


class CpuThrottling(msgspec.Struct, frozen=True, gc=False):
    """Counters of cpu.stat: enforcement periods, those in which the group was throttled, and for how long (us)."""

    periods: int
    throttled: int
    throttled_us: int = 0


class Stall(msgspec.Struct, frozen=True, gc=False):
    """One line of a pressure file: averages in percent of wall time, total in microseconds since boot."""

    avg10_pct: float = 0.0
    avg60_pct: float = 0.0
    avg300_pct: float = 0.0
    total_us: int = 0


class CgroupPressure(msgspec.Struct, frozen=True, gc=False):
    """Pressure of one cgroup, or of the node: some and full of each resource; None where the kernel keeps none."""

    cpu_some: Stall | None = None
    cpu_full: Stall | None = None
    memory_some: Stall | None = None
    memory_full: Stall | None = None
    io_some: Stall | None = None
    io_full: Stall | None = None


class MemoryEvents(msgspec.Struct, frozen=True, gc=False):
    """Counters of memory.events (v2); on v1 `oom_kill` of memory.oom_control and `maximum` from memory.failcnt."""

    high: int = 0
    maximum: int = 0
    oom: int = 0
    oom_kill: int = 0


class DiskBytes(msgspec.Struct, frozen=True, gc=False):
    """Bytes read and written since the cgroup exists, all devices together."""

    read_bytes: int = 0
    written_bytes: int = 0


class NetworkBytes(msgspec.Struct, frozen=True, gc=False):
    """Bytes as the pod sees them, since its interface came up."""

    received_bytes: int = 0
    sent_bytes: int = 0


class CgroupSample(msgspec.Struct, frozen=True, gc=False, tag="cgroup"):
    """CPU time used since the cgroup exists (ns); memory that cannot be dropped, and page cache (bytes).

    What is None the kernel does not offer here, or was not read yet; slow files keep their last reading.
    `charge_bytes` is everything charged, of kubepods and its classes alone. `kernel_bytes` is kernel memory that ends
    with the processes (pipes, sockets, page tables), of pods alone; v1 counts its caches of files there too, v2 as
    `kernel_caches_bytes`.
    """

    cpu_ns: int
    memory_bytes: int
    page_cache_bytes: int = 0
    throttling: CpuThrottling | None = None
    pressure: CgroupPressure | None = None
    events: MemoryEvents | None = None
    disk: DiskBytes | None = None
    charge_bytes: int | None = None
    kernel_bytes: int = 0
    kernel_caches_bytes: int = 0

    @property
    def ends_bytes(self) -> int:
        """Memory that the end of its processes gives back, and nothing else does."""
        return self.memory_bytes + self.kernel_bytes


class NodeSample(msgspec.Struct, frozen=True, tag="node"):
    """CPU time used by everything since boot (ns), memory in use (bytes), CPUs the kernel shows.

    `memory_with_cache_bytes` is total minus free; `memory_used_bytes` total minus available, and `pinned_bytes`: caches
    of the kernel that it counts as available and cannot drop. `present_cpus` counts those that are offline as well, 0
    where the kernel does not tell. `swapped_bytes` are on a swap device alone, `total_bytes` is what the kernel has now
    (MemTotal), 0 where that is not told, `swap_free_bytes` what it may swap.
    """

    cpu_ns: int
    memory_used_bytes: int
    cpus: int
    memory_with_cache_bytes: int = 0
    present_cpus: int = 0
    swapped_bytes: int = 0
    total_bytes: int = 0
    swap_free_bytes: int = 0
    pinned_bytes: int = 0

    def missing_bytes(self, node: Node | None) -> int:
        """Memory that the Node object has and the machine has no more: a balloon's, or in blocks that are offline.

        The kubelet looks once, as it starts.
        """
        if node is None or not self.total_bytes:
            return 0
        return max(node.capacity[MEMORY] - self.total_bytes, 0)


class NumaSample(msgspec.Struct, frozen=True, gc=False):
    """One NUMA node: CPU time of its CPUs since boot (ns), memory in use without droppable cache (bytes)."""

    numa_id: int
    cpu_ns: int
    memory_used_bytes: int


class MemoryActivity(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={
        "reclaimed_pages": "taken",
        "pods_refaulted": "pods_read_back",
        "best_effort_refaulted": "best_effort_read_back",
        "pods_limit_hits": "pods_stopped",
    },
):
    """Pages since boot, or since the cgroup exists: reclaimed by the node, and refaulted (read back after reclaim) by
    all pods and by best effort; and how often a charge met kubepods' own limit.

    What is None the kernel does not count. In the journal they have the names they had at first.
    """

    reclaimed_pages: int
    pods_refaulted: int | None = None
    best_effort_refaulted: int | None = None
    pods_limit_hits: int | None = None
    page_bytes: int = 4096


class PidCounts(msgspec.Struct, frozen=True, gc=False):
    """Processes and threads: how many there are, and how many there may be.

    `node_most` is the smaller of kernel.pid_max and kernel.threads-max, `kubepods_most` None without a limit; what is
    None otherwise was not read. `numbers` is kernel.pid_max, of which a process may keep three.
    """

    node: int
    node_most: int
    kubepods: int | None = None
    kubepods_most: int | None = None
    best_effort: int | None = None
    numbers: int | None = None


Value = int | str
"""What a control file holds: a number, or a Linux CPU list as the kernel prints it (`0-3,8`)."""


class Knob(msgspec.Struct, frozen=True, order=True):
    """One control file: the cgroup below its controller's mount, the controller (empty on v2), the file's name."""

    cgroup: str
    controller: str
    file: str

    @property
    def subject(self) -> str:
        return f"cgroup{self.cgroup}"


class KnobReading(msgspec.Struct, frozen=True, rename={"last_written": "ours"}):
    """What the kernel holds now, and what we wrote last (None where neither we nor an agent before us wrote it).

    `original` is what it held before the first of us wrote it; None where nobody did. `loosened`: somebody else gave
    best effort more than we wrote, now or at a moment since the reading before.
    """

    kernel: Value | Missing
    last_written: Value | None = None
    original: Value | None = None
    loosened: bool = False


class PodPlace(msgspec.Struct, frozen=True):
    """Where a listed pod's cgroup is, and its containers' by name; only what exists."""

    path: str
    containers: Mapping[str, str] = {}


class Places(msgspec.Struct, frozen=True):
    """Which cgroups exist: of listed pods by uid, and every one below the best-effort root, parents first.

    The latter includes pods nobody listed: on v1 a cpuset cannot shrink while a child holds more.
    """

    pods: Mapping[str, PodPlace] = {}
    best_effort: tuple[str, ...] = ()


class Observation(msgspec.Struct, frozen=True, rename={"unlisted_pods": "strangers"}):
    """One pass. `at_seconds` is Unix time, `monotonic_seconds` never steps; rates use the latter.

    `pods` holds a sample or an absence for every listed pod that should have a cgroup, by uid; `containers` the same
    by uid and container name for pods whose containers are known; `host_applications` by name. `unlisted_pods` are
    pod cgroups that no listed pod owns, `unlisted_best_effort` those of them below best effort's root, by cgroup.
    `kubepods_memory_limit_bytes` is None without a limit. `listed` is None until
    the pod list was read once. `best_effort_cpus` counts the CPUs best effort may run on,
    `pods_cpus` those any pod may, None where that cannot be told; `pods_quota_millis` is what all pods together may use
    by a quota of kubepods or above, None without one.
    `brake_cuts` counts the brake's writes since the start, `last_cut_monotonic` dates the newest; `knobs` were read no
    earlier. `unsaved` is why the state file cannot be written, empty while it can. `services_waited_us` is how long the
    node's own services waited for CPU since boot; None where that is not told.
    """

    at_seconds: float
    monotonic_seconds: float
    node_sample: NodeSample | Missing
    kubepods: CgroupSample | Missing
    best_effort: CgroupSample | Missing
    burstable: CgroupSample | Missing | None = None
    pods: Mapping[str, CgroupSample | Missing] = {}
    containers: Mapping[str, Mapping[str, CgroupSample | Missing]] = {}
    host_applications: Mapping[str, CgroupSample | Missing] = {}
    unlisted_pods: tuple[str, ...] = ()
    network: Mapping[str, NetworkBytes] = {}
    numa: tuple[NumaSample, ...] = ()
    best_effort_cpus: int | None = None
    pods_cpus: int | None = None
    pods_quota_millis: int | None = None
    knobs: Mapping[Knob, KnobReading] = {}
    pressure: Pressure | None = None
    node_pressure: CgroupPressure | None = None
    node: Node | None = None
    listed: tuple[Pod, ...] | None = None
    brake_cuts: int = 0
    last_cut_monotonic: float | None = None
    places: Places = Places()
    kubepods_memory_limit_bytes: int | None = None
    pids: PidCounts | None = None
    memory_activity: MemoryActivity | None = None
    unsaved: str = ""
    services_waited_us: int | None = None
    unlisted_best_effort: Mapping[str, CgroupSample | Missing] = {}

    @property
    def barred(self) -> ResourceVector:
        """What of the node no pod may have, so that it is idle and of use to nobody: by the cpuset of kubepods, or by a
        quota or a memory limit there or above."""
        node, sample, cpu, memory = self.node, self.node_sample, 0, 0
        if isinstance(sample, NodeSample):
            cpu = max(sample.cpus - (self.pods_cpus or sample.cpus), 0) * 1000
            if self.pods_quota_millis is not None:
                cpu = max((node.capacity[CPU] if node else sample.cpus * 1000) - self.pods_quota_millis, cpu)
        if node is not None and self.kubepods_memory_limit_bytes is not None:
            memory = max(node.capacity[MEMORY] - self.kubepods_memory_limit_bytes, 0)
        return ResourceVector({CPU: cpu, MEMORY: memory})

    @property
    def measured(self) -> frozenset[str]:
        """The pods that have a cgroup, by uid."""
        return frozenset(uid for uid, sample in self.pods.items() if not isinstance(sample, Missing))
