"""Facts of the whole node: CPU time, CPUs, memory and pressure, by cached descriptors below /proc."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from agent.core.observe import parse
from agent.core.observe.files import Stalls, pressure
from agent.core.observe.isolated import cpu_numbers, idle_ticks
from agent.core.observe.observation import Absence, CgroupPressure, Missing, NodeSample
from agent.core.observe.unaccounted import AccountedTime, Unaccounted, accounted_ticks, followed, uptime_ns
from agent.files.pinnedcaches import PinnedCaches

T = TypeVar("T")

_NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_BYTES = 4096
_VMSTAT_BYTES = 16_384
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STAT_BYTES = 256 * 1024
"""A line a CPU, of some 100 bytes: enough for two thousand."""


class HostReader:
    """`proc` holds stat, meminfo and pressure: /proc, or the host's as mounted into the agent's container.

    CPUs come and go, so each sample counts them again; `cpus` is told for a made /proc that does not list them. `sys`
    has those that are in the machine and offline, those that are isolated, and the kernel's caches. `services` is the
    CPU pressure file of the node's own services.
    """

    def __init__(self, proc: Path, cpus: int = 0, sys: Path | None = None, services: Path | None = None) -> None:
        self._proc = proc
        self._services = str(services) if services else ""
        sys = sys or proc / "nowhere"
        folder = sys / "devices/system/cpu"
        self._present, self._isolated = str(folder / "present"), str(folder / "isolated")
        self._isolated_cpus: frozenset[int] = frozenset()
        self._cpus = cpus
        self._descriptors: dict[str, int] = {}
        self._unaccounted = Unaccounted()
        self._pinned = PinnedCaches(proc, sys)

    def sample(self) -> NodeSample | Missing:
        """CPU time of everything since boot, memory in use without and with page cache."""
        isolated = self._read(self._isolated, cpu_numbers)
        if not isinstance(isolated, Missing):
            self._isolated_cpus = isolated
        processors = self._read("stat", partial(_processors, self._isolated_cpus), _STAT_BYTES)
        memory = self._read("meminfo", self._memory)
        if isinstance(processors, Missing):
            return processors
        if isinstance(memory, Missing):
            return memory
        busy, accounted = processors
        total, available, free, swapped, swap_free, pinned = memory
        present = self._read(self._present, parse.cpu_count)
        there = 0 if isinstance(present, Missing) else present
        online = self._cpus or len(accounted) or 1
        return NodeSample(
            cpu_ns=busy * _NS_PER_TICK + self._unaccounted_ns(accounted),
            memory_used_bytes=min(total - available + pinned, total),
            cpus=online,
            memory_with_cache_bytes=total - free,
            present_cpus=there,
            swapped_bytes=swapped,
            total_bytes=total,
            swap_free_bytes=swap_free,
            pinned_bytes=pinned,
        )

    def pressure(self) -> CgroupPressure | None:
        """None where the kernel keeps no pressure stall information."""
        return pressure(*(self._stalls(name) for name in ("cpu", "memory", "io")))

    def services_waited_us(self) -> int | None:
        """How long any of the node's own services waited for CPU since boot; None where nobody tells."""
        found = self._read(self._services, parse.stalls) if self._services else None
        return found[0].total_us if isinstance(found, tuple) else None

    def reclaimed_pages(self) -> tuple[int, int] | None:
        """Pages that the node's own reclaim took since boot, and a page's size; None where they are not counted."""
        found = self._read("vmstat", parse.vmstat, _VMSTAT_BYTES)
        return None if isinstance(found, Missing) else (found[1], _PAGE_BYTES)

    def pids(self) -> tuple[int, int, int] | None:
        """Processes and threads there are, and there may be, and numbers for them; None where that cannot be told."""
        there = self._read("loadavg", parse.task_count)
        numbers, threads = (self._read(f"sys/kernel/{name}", parse.counter) for name in ("pid_max", "threads-max"))
        if isinstance(there, Missing) or isinstance(numbers, Missing) or isinstance(threads, Missing):
            return None
        return there, min(numbers, threads), numbers

    def close(self) -> None:
        self._pinned.close()
        for name in list(self._descriptors):
            os.close(self._descriptors.pop(name))

    def _memory(self, text: bytes) -> tuple[int, int, int, int, int, int]:
        return (*parse.meminfo(text), parse.swapped(text), parse.swap_free(text), self._pinned.read(text))

    def _unaccounted_ns(self, accounted: Mapping[int, int]) -> int:
        """Grows only where /proc says how long the machine runs."""
        uptime = self._read("uptime", uptime_ns)
        if not isinstance(uptime, Missing):
            by_cpu_ns = {cpu: ticks * _NS_PER_TICK for cpu, ticks in accounted.items()}
            self._unaccounted = followed(self._unaccounted, AccountedTime(uptime, by_cpu_ns))
        return self._unaccounted.total_ns

    def _stalls(self, name: str) -> Stalls | None:
        found = self._read(f"pressure/{name}", parse.stalls)
        return None if isinstance(found, Missing) else found

    def _read(self, name: str, parser: Callable[[bytes], T], size: int = _BYTES) -> T | Missing:
        try:
            descriptor = self._descriptors.get(name)
            if descriptor is None:
                descriptor = os.open(self._proc / name, os.O_RDONLY | os.O_CLOEXEC)
                self._descriptors[name] = descriptor
            return parser(os.pread(descriptor, size, 0))
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and name in self._descriptors:
                os.close(self._descriptors.pop(name))
            absence = Absence.GONE if isinstance(error, FileNotFoundError) else Absence.UNREADABLE
            return Missing(str(self._proc / name), absence, str(error))


def _processors(isolated: Collection[int], stat: bytes) -> tuple[int, dict[int, int]]:
    """Clock ticks all CPUs were busy, all of an isolated one's among them, and ticks of all states by CPU that is
    online: /proc/stat has a line for each."""
    return parse.busy_ticks(stat) + idle_ticks(stat, isolated), accounted_ticks(stat)
