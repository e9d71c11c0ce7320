"""The machine's CPUs and NUMA nodes from kernel text, and what follows from them: zones and CPU share pools.

Parsers take a file's content and raise ValueError saying what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

import msgspec

from agent.core.observe.parse import busy_of_line, given_up
from model.pod.pod import Pod
from model.qos import QoSClass
from model.resources import CPU, MEMORY, ResourceVector
from model.topology import CpuInfo, KubeletCpus, PodCpus, Processor, SharePool, SharePools, Zone, parse_cpus

_MEMINFO_LINE = re.compile(rb"^(?:Node +[0-9]+ +)?([A-Za-z()_]+): +([0-9]{1,15}) kB", re.MULTILINE)
_CPU_LINE = re.compile(rb"^cpu([0-9]{1,5}) (.*)\n", re.MULTILINE)
_NOTHING = ResourceVector()
_DROPPABLE = (b"MemFree", b"Active(file)", b"Inactive(file)", b"SReclaimable")


class CpuPlace(msgspec.Struct, frozen=True):
    """Where one CPU sits by the kernel's own numbers; `core` is unique in its socket only."""

    socket: int
    core: int


class NumaMemory(msgspec.Struct, frozen=True):
    """Memory of one NUMA node; `used_bytes` leaves out what can be dropped."""

    total_bytes: int
    used_bytes: int


class _CpuManagerState(msgspec.Struct, frozen=True, rename="camel"):
    """The kubelet's cpu_manager_state (kubernetes pkg/kubelet/cm/cpumanager/state/checkpoint.go)."""

    policy_name: str
    entries: dict[str, dict[str, str]] = {}


def processors(
    cpus: Iterable[int], places: Mapping[int, CpuPlace], nodes: Mapping[int, Collection[int]]
) -> tuple[Processor, ...]:
    """Online CPUs; one without a place is a core of its own in socket 0, one in no node belongs to the lowest."""
    node_of = {cpu: node for node, members in nodes.items() for cpu in members}
    lowest: dict[CpuPlace, int] = {}
    found = []
    for cpu in sorted(cpus):
        place = places.get(cpu)
        core = lowest.setdefault(place, cpu) if place else cpu
        found.append(Processor(cpu, core, place.socket if place else 0, node_of.get(cpu, min(nodes, default=0))))
    return tuple(found)


def hyper_threading(found: Collection[Processor]) -> bool:
    """Some core runs more than one CPU."""
    return len({processor.core for processor in found}) < len(found)


def model_and_vendor(cpuinfo: bytes) -> tuple[str, str]:
    """(model name, vendor_id) of /proc/cpuinfo; empty where the architecture does not tell."""
    fields: dict[str, str] = {}
    for line in cpuinfo.decode(errors="replace").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return fields.get("model name", ""), fields.get("vendor_id", "")


def turbo(no_turbo: bytes | None, boost: bytes | None) -> bool:
    """Of intel_pstate/no_turbo and cpufreq/boost, either may be absent."""
    return no_turbo.strip() == b"0" if no_turbo is not None else boost is not None and boost.strip() == b"1"


def numa_memory(meminfo: bytes) -> NumaMemory:
    """A NUMA node's meminfo, or /proc/meminfo.

    Used is MemTotal - (MemFree + Active(file) + Inactive(file) + SReclaimable), as Koordinator counts it
    (pkg/koordlet/util/meminfo.go), and what was given up and may be in use again.
    """
    kib = {name: int(number) for name, number in _MEMINFO_LINE.findall(meminfo)}
    missing = [name.decode() for name in (b"MemTotal", *_DROPPABLE) if name not in kib]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing in {meminfo[:60].decode(errors='replace')!r}")
    used = kib[b"MemTotal"] - sum(kib[name] for name in _DROPPABLE) + given_up(kib)
    return NumaMemory(kib[b"MemTotal"] << 10, max(used, 0) << 10)


def busy_ticks_by_cpu(stat: bytes) -> dict[int, int]:
    """Clock ticks each CPU was busy, of /proc/stat's cpuN lines."""
    return {int(cpu): busy_of_line(line) for cpu, line in _CPU_LINE.findall(stat)}


def kubelet_cpus(state: bytes, pods: Iterable[Pod]) -> KubeletCpus:
    """Policy and pods of the kubelet's cpu_manager_state, less LSE and LSR pods with CPUs from the scheduler.

    Koordinator leaves out all that are labelled LS or BE, too (states_noderesourcetopology.go), since its koordlet puts
    those on shared CPUs; here they stay where the kubelet put them.
    """
    try:
        read = msgspec.json.decode(state, type=_CpuManagerState)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"not a cpu_manager_state: {error}") from error
    listed = {pod.cgroup_uid or pod.uid: pod for pod in pods}
    found = []
    for uid, containers in sorted(read.entries.items()):
        cpus = tuple(sorted({cpu for text in containers.values() for cpu in parse_cpus(text)}))
        pod = listed.get(uid)
        if not cpus or (pod and pod.colocation.cpuset and pod.colocation.qos_label in (QoSClass.LSE, QoSClass.LSR)):
            continue
        found.append(PodCpus(uid, cpus, pod.namespace, pod.name) if pod else PodCpus(uid, cpus))
    return KubeletCpus(read.policy_name, tuple(found))


def share_pools(
    info: CpuInfo, pods: Iterable[Pod], kubelet: KubeletCpus | None, unusable: Collection[int]
) -> SharePools:
    """CPUs left to share, isolated ones aside; `unusable` are those reserved or exclusive to the system.

    CPUs the scheduler gave to a pod leave the online pool, those of LSE pods the best-effort pool as well (Koordinator
    states_noderesourcetopology.go). A cpuset that cannot be read raises ValueError naming the pod.
    """
    taken = {*unusable, *info.isolated, *(cpu for pod in (kubelet.pods if kubelet else ()) for cpu in pod.cpus)}
    pinned = [(pod, _pinned(pod)) for pod in pods if pod.colocation.cpuset and not pod.terminal]
    exclusive = {cpu for pod, cpus in pinned if pod.colocation.qos_label is QoSClass.LSE for cpu in cpus}
    return SharePools(
        online=_pools(info, taken.union(*(cpus for _, cpus in pinned))), best_effort=_pools(info, taken | exclusive)
    )


def _pinned(pod: Pod) -> tuple[int, ...]:
    try:
        return parse_cpus(pod.colocation.cpuset)
    except ValueError as error:
        raise ValueError(f"Pod {pod.key}: {error}") from error


def _pools(info: CpuInfo, taken: Collection[int]) -> tuple[SharePool, ...]:
    free = sorted((p.socket, p.node, p.cpu) for p in info.processors if p.cpu not in taken)
    groups = groupby(free, lambda entry: entry[:2])
    return tuple(SharePool(socket, node, tuple(cpu for *_, cpu in group)) for (socket, node), group in groups)


def zones(info: CpuInfo, reserved: ResourceVector = _NOTHING) -> tuple[Zone, ...]:
    """One zone a NUMA node with CPUs; each bears an equal share of `reserved`, rounded up.

    Koordinator deducts the kubelet's reservation only on nodes labelled enable-numa-reservation; elsewhere `reserved`
    is empty.
    """
    nodes = [node for node in info.numa if node.cpus]
    found = []
    for node in nodes:
        capacity = ResourceVector({CPU: 1000 * len(node.cpus), MEMORY: node.memory_bytes})
        allocatable = {name: max(capacity[name] - -(-reserved[name] // len(nodes)), 0) for name in capacity}
        found.append(Zone(node.id, f"node-{node.id}", ResourceVector(allocatable), capacity))
    return tuple(found)
