"""CPUs and NUMA nodes of this machine (sysfs and /proc), and what the kubelet's CPU manager gave away."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import structlog
from msgspec.structs import replace

from agent.core.observe import topology
from agent.core.observe.observation import Absence, Missing, NumaSample
from agent.core.observe.topology import CpuPlace, NumaMemory
from model.fault import KernelFault
from model.pod.pod import Pod
from model.topology import CpuBasics, CpuInfo, KubeletCpus, KubeletPolicy, NumaNode, PodCpus, Processor, parse_cpus

log = structlog.get_logger()

T = TypeVar("T")

_NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_SHORTAGE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_NOWHERE = Path("/nowhere")
_BYTES_A_CPU = 256
_BYTES_AT_LEAST = 4096


class TopologyReader:
    """`sys` and `proc` are /sys and /proc, or the host's as mounted into the agent's container; `kubelet_state` is the
    kubelet's cpu_manager_state.

    What a machine does not show has a plain value: one socket, one NUMA node, every CPU a core of its own. A shortage
    of descriptors or memory is not such an absence: then the last value stays.
    """

    def __init__(self, sys: Path, proc: Path, kubelet_state: Path = _NOWHERE) -> None:
        self._cpus = sys / "devices/system/cpu"
        self._nodes = sys / "devices/system/node"
        self._l3_mask = sys / "fs/resctrl/info/L3/cbm_mask"
        self._proc = proc
        self._kubelet_state = kubelet_state
        self._descriptors: dict[Path, int] = {}
        self._last: CpuInfo | None = None
        self._state_read: tuple[int, ...] = ()

    def read(self) -> CpuInfo:
        """Everything again, some milliseconds: for start and a slow cadence. Raises KernelFault for the first alone."""
        try:
            self._last = self._read()
        except OSError as error:
            if self._last is None:
                fix = "free descriptors (ulimit -n) or memory"
                raise KernelFault(str(self._cpus), f"cannot be read: {error.strerror}", fix) from error
            log.warning("topology cannot be read", error=error.strerror, effect="the last one stays")
        return self._last

    def _read(self) -> CpuInfo:
        cpus = _parsed(self._cpus / "online", _cpu_list) or tuple(range(os.cpu_count() or 1))
        members = {node: self._members(node) for node in self._node_ids()} or {0: cpus}
        found = topology.processors(cpus, {cpu: place for cpu in cpus if (place := self._place(cpu))}, members)
        model, vendor = topology.model_and_vendor(_content(self._proc / "cpuinfo") or b"")
        basics = CpuBasics(
            model=model,
            vendor=vendor,
            hyper_threading=topology.hyper_threading(found),
            turbo=topology.turbo(
                _content(self._cpus / "intel_pstate/no_turbo"), _content(self._cpus / "cpufreq/boost")
            ),
            l3_mask=(_content(self._l3_mask) or b"").decode(errors="replace").strip(),
        )
        isolated = _parsed(self._cpus / "isolated", _cpu_list) or ()
        numa = tuple(self._numa_node(node, found) for node in sorted(members))
        return CpuInfo(basics, found, numa, isolated, *self._given_away(isolated))

    def refreshed(self) -> CpuInfo | None:
        """With what the kubelet gave away since; None where it wrote nothing. For a quick cadence. Never raises."""
        if self._last is None or _identity(self._kubelet_state) == self._state_read:
            return None
        given_away, policy = self._given_away(self._last.isolated)
        self._last = replace(self._last, given_away=given_away, policy=policy)
        return self._last

    def _given_away(self, isolated: Iterable[int]) -> tuple[tuple[PodCpus, ...], KubeletPolicy]:
        """What a state that cannot be read says is what it said last; at the start, that every Guaranteed pod has its
        own, which lends least. So it is of one that was removed: people do that before a kubelet starts with another
        policy, and its pods keep their CPUs meanwhile. Isolated CPUs that nobody works on count as used already."""
        self._state_read = _identity(self._kubelet_state)
        if not self._state_read and self._last is not None:
            return self._last.given_away, self._last.policy
        state = kubelet_cpus(self._kubelet_state, ())
        if isinstance(state, Missing):
            self._state_read = ()
            return (self._last.given_away, self._last.policy) if self._last else ((), KubeletPolicy.STATIC)
        given = {cpu for pod in state.pods for cpu in pod.cpus}
        shared = state.policy == KubeletPolicy.STATIC and not (given and given.issubset(isolated))
        return state.pods, KubeletPolicy.STATIC if shared else KubeletPolicy.NONE

    def numa(self, info: CpuInfo) -> tuple[NumaSample, ...]:
        """CPU time and memory of each NUMA node, through cached descriptors; a node that cannot be read is left out."""
        room = _BYTES_AT_LEAST + _BYTES_A_CPU * len(info.processors)
        ticks = self._kept(self._proc / "stat", topology.busy_ticks_by_cpu, room)
        if ticks is None:
            return ()
        samples = []
        for node in info.numa:
            memory = self._kept(self._meminfo(node.id), topology.numa_memory, _BYTES_AT_LEAST)
            if memory is not None and all(cpu in ticks for cpu in node.cpus):
                busy = sum(ticks[cpu] for cpu in node.cpus)
                samples.append(NumaSample(node.id, busy * _NS_PER_TICK, memory.used_bytes))
        return tuple(samples)

    def close(self) -> None:
        for path in list(self._descriptors):
            os.close(self._descriptors.pop(path))

    def _node_ids(self) -> list[int]:
        return sorted(int(p.name[4:]) for p in self._nodes.glob("node[0-9]*") if p.name[4:].isdigit())

    def _members(self, node: int) -> tuple[int, ...]:
        return _parsed(self._nodes / f"node{node}/cpulist", _cpu_list) or ()

    def _numa_node(self, node: int, found: Iterable[Processor]) -> NumaNode:
        memory = _parsed(self._meminfo(node), topology.numa_memory) or NumaMemory(0, 0)
        return NumaNode(node, tuple(p.cpu for p in found if p.node == node), memory.total_bytes)

    def _meminfo(self, node: int) -> Path:
        """A kernel without NUMA has one node, and its memory is the machine's."""
        own = self._nodes / f"node{node}/meminfo"
        return own if own.exists() else self._proc / "meminfo"

    def _place(self, cpu: int) -> CpuPlace | None:
        folder = self._cpus / f"cpu{cpu}/topology"
        core = _parsed(folder / "core_id", int)
        socket = _parsed(folder / "physical_package_id", int)
        # The kernel says -1 where the firmware does not tell.
        return None if core is None or core < 0 else CpuPlace(max(socket or 0, 0), core)

    def _kept(self, path: Path, parser: Callable[[bytes], T], room: int) -> T | None:
        try:
            if path not in self._descriptors:
                self._descriptors[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            return parser(os.pread(self._descriptors[path], room, 0))
        except (OSError, ValueError):
            if path in self._descriptors:
                os.close(self._descriptors.pop(path))
            return None


def _identity(path: Path) -> tuple[int, ...]:
    """Which writing of a file this is; empty where there is none. The kubelet renames a new file into its place."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def kubelet_cpus(state: Path, pods: Iterable[Pod]) -> KubeletCpus | Missing:
    """From the kubelet's cpu_manager_state file; without one no policy is in force."""
    try:
        return topology.kubelet_cpus(state.read_bytes(), pods)
    except FileNotFoundError:
        return KubeletCpus()
    except (OSError, ValueError) as error:
        return Missing(str(state), Absence.UNREADABLE, str(error))


def _cpu_list(text: bytes) -> tuple[int, ...]:
    return parse_cpus(text.decode(errors="replace"))


def _content(path: Path) -> bytes | None:
    """None where the machine has no such file or will not show it. Raises OSError for a shortage of ours."""
    try:
        return path.read_bytes()
    except OSError as error:
        if error.errno in _SHORTAGE:
            raise
        return None


def _parsed(path: Path, parser: Callable[[bytes], T]) -> T | None:
    """None for an absent file, and with a log line for one that says nothing sensible."""
    text = _content(path)
    try:
        return None if text is None else parser(text)
    except ValueError as error:
        log.warning("topology file unreadable", path=str(path), error=str(error), effect="counted as absent")
        return None
