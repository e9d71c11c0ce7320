"""A simulated kernel over a fake process table, and a real one as a program."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
import pytest

from embedded.cgroups.drivers import CgroupDriver
from embedded.cpu_lists import format_cpus
from embedded.simkernel.kernel import SimulatedKernel
from embedded.simkernel.limits import Priority
from embedded.simkernel.process_table import Process, ProcessTable
from embedded.simkernel.tree import MARK, SimulatedCgroups, make_root, simulated_layout

OWNER = 1000
_serial = itertools.count()


class FakeTable(ProcessTable):
    """Processes that a test makes; `memory` by pid."""

    def __init__(self) -> None:
        super().__init__("/nowhere")
        self.processes: dict[int, Process] = {}
        self.memory: dict[int, int] = {}
        self.shared: dict[int, int] = {}
        self.marks: dict[int, str] = {}

    def add(self, pid: int, parent: int = OWNER, session: int = 0, started: int = 1, cpu_us: int = 0) -> None:
        self.processes[pid] = Process(pid, parent, session or pid, started, "R", cpu_us)

    def change(self, pid: int, **changes: int | str) -> None:
        self.processes[pid] = msgspec.structs.replace(self.processes[pid], **changes)

    def pids(self) -> set[int]:
        return set(self.processes)

    def look(self, pid: int) -> Process | None:
        return self.processes.get(pid)

    def variable(self, pid: int, name: str) -> str | None:
        return self.marks.get(pid) if name == MARK else None

    def own_memory(self, pid: int) -> int:
        return self.memory.get(pid, 0)

    def fair_memory(self, pid: int) -> int:
        return self.memory.get(pid, 0) - self.shared.get(pid, 0)


class FakeActions:
    """Does to fake processes what signals do to real ones."""

    def __init__(self, table: FakeTable) -> None:
        self._table = table
        self.pinned: dict[int, tuple[int, ...]] = {}
        self.lowered: dict[int, Priority] = {}
        self.killed: list[int] = []

    def signal(self, pid: int, number: signal.Signals) -> None:
        if pid not in self._table.processes:
            return
        if number is signal.SIGKILL:
            self.killed.append(pid)
            del self._table.processes[pid]
        else:
            self._table.change(pid, state="T" if number is signal.SIGSTOP else "R")

    def pin(self, pid: int, cpus: Collection[int]) -> None:
        self.pinned[pid] = tuple(cpus)

    def lower(self, pid: int, priority: Priority) -> None:
        self.lowered[pid] = priority


class World:
    """A tree with fake processes; each `step` is 100 ms."""

    def __init__(self, root: Path) -> None:
        make_root(root, "0-3")
        self.table = FakeTable()
        self.actions = FakeActions(self.table)
        self.cgroups = SimulatedCgroups(simulated_layout(root, "t", CgroupDriver.CGROUPFS), self.table)
        self.root = root
        self.now = 100.0
        self.kernel = self.begin()

    def begin(self) -> SimulatedKernel:
        """A simulator that starts again over what is there."""
        self.kernel = SimulatedKernel(self.root, self.table, self.actions, (0, 1, 2, 3), OWNER)
        return self.kernel

    def make(self, path: str, **knobs: str) -> str:
        """A cgroup below kubepods, its files set (`cpu_max` is cpu.max)."""
        full = f"{self.cgroups.layout.kubepods}/{path}"
        self.cgroups.create(full)
        for name, text in knobs.items():
            self.cgroups.write("", full, name.replace("_", "."), text)
        return full

    def join(self, path: str, pid: int, **process: int) -> None:
        """A container's first process asks in."""
        self.table.add(pid, **process)
        self.ask(path, pid, self.table.processes[pid].started_ticks)

    def ask(self, path: str, pid: int, ticks: int) -> None:
        """What a process that began at `ticks` writes to get in, whether it is still there or not."""
        for file in self.cgroups.procs_files(path):
            with Path(file).open("a") as joined:
                joined.write(f"{pid}:{ticks}\n")

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.now += 0.1
            self.kernel.step(self.now)

    def read(self, path: str, file: str) -> str:
        return self.cgroups.read("", path, file) or ""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "kernel")


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[SimulatedCgroups]:
    """A tree that the simulating program keeps, for real processes of this one."""
    root = tmp_path / "kernel"
    make_root(root, format_cpus(os.sched_getaffinity(0)))
    layout = simulated_layout(root, f"sim-{os.getpid()}-{next(_serial)}", CgroupDriver.CGROUPFS)
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "embedded.simkernel", "--root", str(root), "--owner", str(os.getpid())]
    program = subprocess.Popen([*command, "--ready-file", str(ready)])
    while not ready.exists():
        assert program.poll() is None
    yield SimulatedCgroups(layout, ProcessTable())
    program.send_signal(signal.SIGTERM)
    assert program.wait(20) == 0
