"""The agent's own reader behind the benchmark's protocol."""

from __future__ import annotations

import sys
from pathlib import Path

import structlog

from agent.core.observe.files import FILES
from agent.core.observe.observation import CgroupSample
from agent.edge.cgroupfs import CgroupReader
from bench.agent.files import COMPARED, ReadPlan
from bench.agent.readers import Totals


class OurReader:
    """With `as_the_tick`, every file the agent has, slow ones in turn; else the compared ones, all in each pass."""

    def __init__(self, *, as_the_tick: bool) -> None:
        self._as_the_tick = as_the_tick
        # Standard output belongs to the answers.
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))

    def open(self, plan: ReadPlan) -> None:
        kinds = FILES[plan.version]
        if self._as_the_tick:
            self._reader = CgroupReader(Path(plan.root), kinds)
        else:
            compared = [kind for kind in kinds if kind.part in COMPARED]
            self._reader = CgroupReader(Path(plan.root), compared, slow_passes=1)
        self._version = plan.version
        self._files = sum(len(group.paths) for group in plan.groups)
        self._reader.place(plan.roles)

    def read(self) -> None:
        self._samples = self._reader.read()

    def totals(self) -> Totals:
        """All but the memory level, which a sample does not show; that it was read is seen by what is open."""
        opened = self._reader.open_descriptors
        if not self._as_the_tick and opened != self._files:
            raise RuntimeError(f"{opened} files are open, {self._files} were asked for")
        found = [sample for sample in self._samples.values() if isinstance(sample, CgroupSample)]
        if len(found) != len(self._samples):
            raise RuntimeError(f"{len(self._samples) - len(found)} cgroups could not be read")
        cpu_ns = sum(sample.cpu_ns for sample in found)
        throttling = [sample.throttling for sample in found if sample.throttling]
        throttled = sum(item.periods + item.throttled for item in throttling)
        totals = {"memory.stat": sum(sample.memory_bytes + sample.page_cache_bytes for sample in found)}
        if self._version == 1:
            totals.update({"cpuacct.usage": cpu_ns, "cpu.stat": throttled})
        else:
            totals["cpu.stat"] = cpu_ns // 1000 + throttled + sum(item.throttled_us for item in throttling)
        lines = [line for s in found if (p := s.pressure) for line in (p.cpu_some, p.cpu_full) if line]
        return {**totals, "cpu.pressure": sum(line.total_us for line in lines)} if lines else totals
