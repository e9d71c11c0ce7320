"""Control groups as plain directories: born with their files, emptied by killing whom they hold, removed as a whole.

A pid is killed only together with the start time it was written down with: these files outlive a crash, and the
numbers in them may by then be others' processes. `.members` and `.joined`, who asked in and is not written down as a
member yet, hold `pid:ticks` a line. Heard lines of `.joined` are punched out, so that its writers never notice.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

import structlog

from agent.core.observe.layout import CgroupDriver
from local.node.cgroups import Cgroups
from local.node.layout import V2_CONTROLLERS, Layout
from local.node.simkernel.accounts import Account
from local.node.simkernel.table import ProcessTable
from model.fault import ConfigurationFault, KernelFault

log = structlog.get_logger()

MEMBERS, JOINED, PROCS = ".members", ".joined", "cgroup.procs"
# A variable of each container, and so of all it begins.
MARK = "SUBLET_CGROUP"
_CONTROLLERS = "cpuset cpu io memory pids\n"
_REMOVED_WITHIN_SECONDS = 5.0
_RETRY_SECONDS = 0.01
_PAIR = re.compile(r"^([0-9]+):([0-9]+)\n", re.MULTILINE)
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

    def mark(self, path: str) -> dict[str, str]:
        """Tells a daemon's home, whose parent and session were gone before anybody looked at it."""
        return {MARK: self._directories(path)[0].as_posix()}

    def members(self, path: str) -> set[int]:
        directories = [folder for top in self._directories(path) for folder in cgroups_below(top)]
        # In this order: whoever is written down meanwhile is then in one of the two.
        joined = self._just_joined(directories)
        return joined | members_of(directories)

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
        leaders = dict(pair for folder in directories if folder in self._made for pair in read_joined(folder))
        return self._table.in_sessions(leaders) if leaders else set()


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
        return parse_pairs((folder / MEMBERS).read_text())
    except OSError:
        return []


def read_joined(folder: Path) -> list[tuple[int, int]]:
    """(pid, start time) of each process that asked in and was not heard yet."""
    try:
        with (folder / JOINED).open("rb", buffering=0) as file:
            file.seek(first_data(file.fileno()))
            return parse_pairs(file.read().decode(errors="replace"))
    except OSError:
        return []


def first_data(descriptor: int) -> int:
    """Where the bytes that were not punched out begin, or a little before. Raises OSError."""
    try:
        return os.lseek(descriptor, 0, os.SEEK_DATA)
    except OSError:
        return os.lseek(descriptor, 0, os.SEEK_END)


def parse_pairs(text: str) -> list[tuple[int, int]]:
    """Of whole `pid:ticks` lines; half of one, and what was punched out, say nothing."""
    return [(int(pid), int(ticks)) for pid, ticks in _PAIR.findall(text.lstrip("\0"))]


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
