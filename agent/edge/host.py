"""Facts of the whole node: CPU time, memory and pressure, by cached descriptors below /proc; CPUs by psutil."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

from agent.core import parse
from agent.core.files import Stalls, pressure
from agent.core.observation import Absence, CgroupPressure, Missing, NodeSample

T = TypeVar("T")

_NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_BYTES = 4096


class HostReader:
    """`proc` holds stat, meminfo and pressure: /proc, or the host's as mounted into the agent's container."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._descriptors: dict[str, int] = {}
        self._cpus = psutil.cpu_count(logical=True) or 1

    def sample(self) -> NodeSample | Missing:
        """CPU time of everything since boot, memory in use without and with page cache."""
        busy = self._read("stat", parse.busy_ticks)
        memory = self._read("meminfo", parse.meminfo)
        if isinstance(busy, Missing):
            return busy
        if isinstance(memory, Missing):
            return memory
        total, available, free = memory
        return NodeSample(busy * _NS_PER_TICK, total - available, self._cpus, total - free)

    def pressure(self) -> CgroupPressure | None:
        """None where the kernel keeps no pressure stall information."""
        return pressure(*(self._stalls(name) for name in ("cpu", "memory", "io")))

    def close(self) -> None:
        for name in list(self._descriptors):
            os.close(self._descriptors.pop(name))

    def _stalls(self, name: str) -> Stalls | None:
        found = self._read(f"pressure/{name}", parse.stalls)
        return None if isinstance(found, Missing) else found

    def _read(self, name: str, parser: Callable[[bytes], T]) -> T | Missing:
        try:
            descriptor = self._descriptors.get(name)
            if descriptor is None:
                descriptor = os.open(self._proc / name, os.O_RDONLY | os.O_CLOEXEC)
                self._descriptors[name] = descriptor
            return parser(os.pread(descriptor, _BYTES, 0))
        except (OSError, ValueError) as error:
            absence = Absence.GONE if isinstance(error, FileNotFoundError) else Absence.UNREADABLE
            return Missing(str(self._proc / name), absence, str(error))
