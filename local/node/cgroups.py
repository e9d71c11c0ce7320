"""Our cgroups on this machine: made, written, emptied and removed, in every v1 hierarchy that exists.

Nothing outside the layout's prefix can be named here: `Layout.directory` refuses such a path.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path, PurePosixPath

import structlog

from local import cgrouptree
from local.node.layout import CONTROLLERS, REQUIRED_CONTROLLERS, Layout
from local.node.resources import PERIOD_US, Ceiling
from model.fault import KernelFault

log = structlog.get_logger()

_REMOVED_WITHIN_SECONDS = 5.0


class UnsuitableKernel(KernelFault):
    """This machine or this user has no cgroup v1 to work with."""


def discover(root: Path, id_: str) -> Layout:
    """The layout on this machine. Raises UnsuitableKernel without root or writable cgroup v1 hierarchies."""
    present = tuple(each for each in CONTROLLERS if (root / each / "cgroup.procs").exists())
    lacking = [each for each in REQUIRED_CONTROLLERS if each not in present]
    if lacking:
        raise UnsuitableKernel(str(root), f"no cgroup v1 hierarchy for {', '.join(lacking)}", "mount cgroup v1 there")
    if os.geteuid() != 0 or not all(os.access(root / each, os.W_OK) for each in REQUIRED_CONTROLLERS):
        fix = "run it as root" if os.geteuid() != 0 else "mount them read-write"
        raise UnsuitableKernel(str(root), "the cgroup v1 hierarchies are not writable", fix)
    writable = tuple(each for each in present if os.access(root / each, os.W_OK))
    return Layout(PurePosixPath(root), id_, writable)


class Cgroups:
    """One object per node; blocking calls take microseconds to a few milliseconds."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def create(self, path: str) -> None:
        """Make the cgroup and its missing parents in every hierarchy. Raises KernelFault."""
        for controller in self.layout.controllers:
            directory = self._directory(controller, path)
            for step in reversed([directory, *directory.parents]):
                if self._ours(controller, step):
                    self._make(controller, step)

    def set_ceiling(self, path: str, ceiling: Ceiling) -> None:
        """Write shares, quota and memory limit. Raises KernelFault."""
        self.write("cpu", path, "cpu.shares", ceiling.cpu_shares)
        if ceiling.cpu_quota_us is not None:
            self.write("cpu", path, "cpu.cfs_period_us", PERIOD_US)
            self.write("cpu", path, "cpu.cfs_quota_us", ceiling.cpu_quota_us)
        if ceiling.memory_limit_bytes is not None:
            self.write("memory", path, "memory.limit_in_bytes", ceiling.memory_limit_bytes)

    def write(self, controller: str, path: str, knob: str, value: int) -> None:
        """Raises KernelFault naming the file and the value."""
        file = self._directory(controller, path) / knob
        try:
            file.write_text(f"{value}\n")
        except OSError as error:
            raise KernelFault(str(file), f"cannot write {value}: {error.strerror}") from error

    def read(self, controller: str, path: str, knob: str) -> str | None:
        """The content, or None when the cgroup or the knob is gone."""
        try:
            return (self._directory(controller, path) / knob).read_text()
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        return any(each.is_dir() for each in self._directories(path))

    def oom_kills(self, path: str) -> int:
        """Processes of this cgroup that the kernel killed for want of memory."""
        for line in (self.read("memory", path, "memory.oom_control") or "").splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
        return 0

    def procs_files(self, path: str) -> list[str]:
        """The cgroup.procs of every hierarchy: a process that writes itself into all of them is inside."""
        return [str(each / "cgroup.procs") for each in self._directories(path)]

    def members(self, path: str) -> set[int]:
        """Ids of all processes in the cgroup and below, in any hierarchy."""
        return cgrouptree.members(self._directories(path))

    def kill(self, path: str) -> bool:
        """SIGKILL to everything inside once; True when nothing was left to kill."""
        return cgrouptree.kill(self._directories(path))

    async def remove(self, path: str) -> bool:
        """Kill what is inside and remove the cgroup, in every hierarchy; False when something resists five seconds."""
        remaining = await cgrouptree.kill_and_remove(self._directories(path), _REMOVED_WITHIN_SECONDS)
        if remaining:
            pids = sorted(self.members(path))
            log.error("cgroup cannot be removed", cgroup=path, directories=[str(each) for each in remaining], pids=pids)
        return not remaining

    def _directories(self, path: str) -> list[Path]:
        return [self._directory(each, path) for each in self.layout.controllers]

    def _directory(self, controller: str, path: str) -> Path:
        return Path(self.layout.directory(controller, path))

    def _ours(self, controller: str, directory: Path) -> bool:
        return directory.is_relative_to(self._directory(controller, self.layout.prefix))

    def _make(self, controller: str, directory: Path) -> None:
        try:
            directory.mkdir(exist_ok=True)
            if controller == "cpuset":
                _inherit_cpuset(directory)
        except OSError as error:
            kind = UnsuitableKernel if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) else KernelFault
            raise kind(str(directory), f"cannot make the cgroup: {error.strerror}") from error


def _inherit_cpuset(directory: Path) -> None:
    """A v1 cpuset is born empty and takes no task until it has CPUs and memory nodes."""
    for knob in ("cpuset.cpus", "cpuset.mems"):
        if not (directory / knob).read_text().strip():
            (directory / knob).write_text((directory.parent / knob).read_text())
