"""Control groups as plain directories: born with their files, emptied by killing whom they hold, removed as a whole.

A pid is killed only together with the start time it was written down with: these files outlive a crash, and the
numbers in them may by then be others' processes. `.members` holds `pid:ticks` a line, `.joined` the pids that asked in.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

import structlog

from agent.core.layout import CgroupDriver
from local.node.cgroups import Cgroups
from local.node.layout import V2_CONTROLLERS, Layout
from local.node.simkernel.accounts import Account
from local.node.simkernel.table import ProcessTable
from model.fault import ConfigurationFault, KernelFault

log = structlog.get_logger()

MEMBERS, JOINED, PROCS = ".members", ".joined", "cgroup.procs"
_CONTROLLERS = "cpuset cpu io memory pids\n"
_REMOVED_WITHIN_SECONDS = 5.0
_RETRY_SECONDS = 0.01
# `cgroup.procs` comes last: who finds it finds all the others.
_BORN_WITH = {
    "cgroup.controllers": _CONTROLLERS,
    "cgroup.subtree_control": _CONTROLLERS,
    "cgroup.type": "domain\n",
    "cpu.idle": "0\n",
    "cpu.max": "max 100000\n",
    "cpu.max.burst": "0\n",
    "cpu.weight": "100\n",
    "cpuset.cpus": "\n",
    "cpuset.mems": "\n",
    "io.stat": "",
    "memory.high": "max\n",
    "memory.low": "0\n",
    "memory.max": "max\n",
    "memory.min": "0\n",
    "memory.oom.group": "0\n",
    "pids.max": "max\n",
    MEMBERS: "",
    JOINED: "",
}


def make_root(root: Path, cpus: str) -> None:
    """The top of the tree; `cpus` is the list of all CPUs. Raises ConfigurationFault where other things are there."""
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (root / "cgroup.controllers").exists():
            if any(root.iterdir()):
                raise ConfigurationFault(str(root), "holds other things", "give --cgroup-root an empty directory")
            _be_born(root, cpus)
    except OSError as error:
        raise ConfigurationFault(str(root), f"not usable: {error.strerror}", "give --cgroup-root another") from error


def simulated_layout(root: Path, id_: str, driver: CgroupDriver) -> Layout:
    """Cgroup v2 with every controller."""
    return Layout(PurePosixPath(root), id_, V2_CONTROLLERS, 2, driver)


class SimulatedCgroups(Cgroups):
    """As on a kernel, for its only caller; `table` finds what the simulation has not written down yet."""

    def __init__(self, layout: Layout, table: ProcessTable) -> None:
        super().__init__(layout)
        self._table = table
        self._made: set[Path] = set()

    def procs_files(self, path: str) -> list[str]:
        return [str(each / JOINED) for each in self._directories(path)]

    def members(self, path: str) -> set[int]:
        directories = [folder for top in self._directories(path) for folder in cgroups_below(top)]
        return members_of(directories) | self._just_joined(directories)

    def kill(self, path: str) -> bool:
        inside = self.members(path)
        _kill(inside)
        return not inside

    async def remove(self, path: str) -> bool:
        deadline = time.monotonic() + _REMOVED_WITHIN_SECONDS
        while not (self.kill(path) and all(_vanished(top) for top in self._directories(path))):
            if time.monotonic() > deadline:
                log.error("cgroup cannot be removed", cgroup=path, pids=sorted(self.members(path)))
                return False
            await asyncio.sleep(_RETRY_SECONDS)
        self._made = {folder for folder in self._made if folder.exists()}
        return True

    def _make(self, controller: str, directory: Path) -> None:
        try:
            if not (directory / PROCS).exists():
                directory.mkdir(exist_ok=True)
                _be_born(directory, (directory.parent / "cpuset.cpus.effective").read_text())
                self._made.add(directory)
        except OSError as error:
            raise KernelFault(str(directory), f"cannot make the cgroup: {error.strerror}") from error

    def _just_joined(self, directories: Iterable[Path]) -> set[int]:
        """Sessions that began here, of cgroups this process made: older ones' numbers may be others' by now."""
        sessions = {pid for folder in directories if folder in self._made for pid in read_numbers(folder / JOINED)}
        return self._table.in_sessions(sessions) if sessions else set()


async def sweep(top: Path, bound_seconds: float = _REMOVED_WITHIN_SECONDS) -> list[Path]:
    """Kill what a simulation left below `top` and remove it; returns what resisted for the bound."""
    deadline = time.monotonic() + bound_seconds
    while top.is_dir():
        _kill(members_of(list(cgroups_below(top))))
        if _vanished(top) or time.monotonic() > deadline:
            break
        await asyncio.sleep(_RETRY_SECONDS)
    return [top] if top.is_dir() else []


def cgroups_below(top: Path) -> Iterator[Path]:
    """`top` and every cgroup below it, parents first."""
    for folder, _, files in os.walk(top):
        if PROCS in files:
            yield Path(folder)


def members_of(directories: Iterable[Path]) -> set[int]:
    """Processes written down in these directories that still live."""
    table = ProcessTable()
    found = set()
    for folder in directories:
        for pid, ticks in read_members(folder):
            process = table.look(pid)
            if process is not None and process.started_ticks == ticks and process.alive:
                found.add(pid)
    return found - {os.getpid()}


def read_members(folder: Path) -> list[tuple[int, int]]:
    """(pid, start time) of each process the simulation counted into a cgroup."""
    try:
        pairs = [line.split(":") for line in (folder / MEMBERS).read_text().split()]
        return [(int(pid), int(ticks)) for pid, ticks in pairs]
    except (OSError, ValueError):
        return []


def read_numbers(file: Path) -> list[int]:
    try:
        return [int(word) for word in file.read_text().split()]
    except (OSError, ValueError):
        return []


def _be_born(directory: Path, cpus: str) -> None:
    content = {**_BORN_WITH, "cpuset.cpus.effective": f"{cpus.strip()}\n", "cpuset.mems.effective": "0\n"}
    for name, text in {**content, **Account().texts()}.items():
        (directory / name).write_text(text)
    (directory / PROCS).write_text("")


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _vanished(top: Path) -> bool:
    # Whoever else puts a file in at this moment makes one more try necessary.
    shutil.rmtree(top, ignore_errors=True)
    return not top.exists()
