"""Facts of the whole node: CPU time, memory, pressure (psutil and /proc)."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from agent.core import parse
from agent.core.observation import Absence, Missing, NodeSample
from model.report import Pressure

_NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class HostReader:
    """`proc` holds stat and pressure: /proc, or the host's as mounted into the agent's container.

    Memory comes from psutil, that is from the container's own /proc/meminfo, which shows the whole node.
    """

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._stat = os.open(proc / "stat", os.O_RDONLY | os.O_CLOEXEC)
        self._cpus = psutil.cpu_count(logical=True) or 1

    def sample(self) -> NodeSample | Missing:
        """CPU time of everything since boot, memory in use (total minus available)."""
        try:
            cpu_ns = parse.busy_ticks(os.pread(self._stat, 4096, 0)) * _NS_PER_TICK
            memory = psutil.virtual_memory()
        except (OSError, ValueError) as error:
            return Missing(str(self._proc / "stat"), Absence.UNREADABLE, str(error))
        return NodeSample(cpu_ns, memory.total - memory.available, self._cpus)

    def pressure(self) -> Pressure | None:
        """None where the kernel keeps no pressure stall information."""
        try:
            folder = self._proc / "pressure"
            return parse.pressure((folder / "cpu").read_bytes(), (folder / "memory").read_bytes())
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        os.close(self._stat)
