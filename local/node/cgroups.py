"""Our cgroups on this machine: made, written, emptied and removed, in every v1 hierarchy that exists or in v2's one.

Nothing outside the layout's prefix can be named here: `Layout.directory` refuses such a path.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path, PurePosixPath

import structlog

from agent.core.observe.layout import CgroupDriver
from local import cgrouptree
from local.node.knobs import KNOBS, Use, Write, number_of
from local.node.layout import CONTROLLERS, REQUIRED_CONTROLLERS, V2_CONTROLLERS, Layout
from local.node.resources import Ceiling
from model.fault import KernelFault

log = structlog.get_logger()

_REMOVED_WITHIN_SECONDS = 5.0
# EBUSY and EOPNOTSUPP: a v2 root that holds processes itself, as a container's does, hands no controller down.
_UNSUITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EBUSY, errno.EOPNOTSUPP)


class UnsuitableKernel(KernelFault):
    """This machine or this user has no cgroups to work with."""


def discover(root: Path, id_: str, driver: CgroupDriver = CgroupDriver.CGROUPFS) -> Layout:
    """The layout on this machine. Raises UnsuitableKernel without root or writable cgroups."""
    version = 2 if (root / "cgroup.controllers").exists() else 1
    present = _present(root, version)
    lacking = [each for each in REQUIRED_CONTROLLERS if each not in present]
    if lacking:
        raise UnsuitableKernel(str(root), f"no cgroup controllers {', '.join(lacking)}", "mount cgroup v1 or v2 there")
    trees = {each: root / each if version == 1 else root for each in present}
    if os.geteuid() != 0 or not all(os.access(trees[each], os.W_OK) for each in REQUIRED_CONTROLLERS):
        fix = "run it as root" if os.geteuid() != 0 else "mount them read-write"
        raise UnsuitableKernel(str(root), f"cgroup v{version} is not writable", fix)
    writable = tuple(each for each in present if os.access(trees[each], os.W_OK))
    return Layout(PurePosixPath(root), id_, writable, version, driver)


def _present(root: Path, version: int) -> tuple[str, ...]:
    if version == 1:
        return tuple(each for each in CONTROLLERS if (root / each / "cgroup.procs").exists())
    known = (root / "cgroup.controllers").read_text().split()
    return tuple(each for each in V2_CONTROLLERS if each in known)


class Cgroups:
    """One object per node; blocking calls take microseconds to a few milliseconds."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.knobs = KNOBS[layout.version]

    def create(self, path: str) -> None:
        """Make the cgroup and its missing parents in every hierarchy. Raises KernelFault."""
        for controller in self.layout.hierarchies:
            directory = self._directory(controller, path)
            for step in reversed([directory, *directory.parents]):
                if step.is_relative_to(self._directory(controller, self.layout.prefix)):
                    self._make(controller, step)

    def set_ceiling(self, path: str, ceiling: Ceiling) -> None:
        """Write shares, quota and memory limit. Raises KernelFault."""
        self._put_all(path, self.knobs.ceiling(ceiling))

    def set_container(self, path: str, ceiling: Ceiling) -> None:
        """As `set_ceiling`, with what only a container's cgroup gets. Raises KernelFault."""
        self._put_all(path, [*self.knobs.ceiling(ceiling), *self.knobs.container()])

    def hold_shares(self, path: str, shares: int) -> None:
        """Have these CPU shares there, written only where it holds others. Raises KernelFault."""
        wanted = self.knobs.shares(shares)
        held = self.read(wanted.controller, path, wanted.file)
        if held is not None and held.strip() != wanted.text:
            self._put(path, wanted)

    def write(self, controller: str, path: str, knob: str, value: int | str) -> None:
        """Raises KernelFault naming the file and the value."""
        self._put(path, Write(controller, knob, str(value)))

    def read(self, controller: str, path: str, knob: str) -> str | None:
        """The content, or None when the cgroup or the knob is gone."""
        try:
            return (self._directory(controller, path) / knob).read_text()
        except OSError:
            return None

    def use(self, path: str) -> Use | None:
        """CPU time used and memory held, all below included; None where the cgroup is gone or does not tell."""
        texts = [self.read(controller, path, file) for controller, file in self.knobs.use_files]
        try:
            return self.knobs.use(*(text or "" for text in texts))
        except ValueError:
            return None

    def exists(self, path: str) -> bool:
        return any(each.is_dir() for each in self._directories(path))

    def oom_kills(self, path: str) -> int:
        """Processes of this cgroup that the kernel killed for want of memory."""
        controller, file = self.knobs.oom_file
        with suppress(ValueError):
            return number_of("oom_kill", self.read(controller, path, file) or "")
        return 0

    def procs_files(self, path: str) -> list[str]:
        """What a process writes its id into, each of them, to be inside."""
        return [str(each / "cgroup.procs") for each in self._directories(path)]

    def mark(self, path: str) -> dict[str, str]:
        """Variables for what runs inside; a kernel needs none to know its own."""
        return {}

    def members(self, path: str) -> set[int]:
        """Ids of all processes in the cgroup and below, in any hierarchy."""
        return cgrouptree.members(self._directories(path))

    def kill(self, path: str) -> bool:
        """SIGKILL to everything inside once; True when nothing was left to kill."""
        return cgrouptree.kill(self._directories(path))

    def remove_empty(self, path: str) -> None:
        """Remove what no process is in, at once."""
        cgrouptree.remove_empty(self._directories(path))

    async def remove(self, path: str) -> bool:
        """Kill what is inside and remove the cgroup, in every hierarchy; False when something resists five seconds."""
        remaining = await cgrouptree.kill_and_remove(self._directories(path), _REMOVED_WITHIN_SECONDS)
        if remaining:
            pids = sorted(self.members(path))
            log.error("cgroup cannot be removed", cgroup=path, directories=[str(each) for each in remaining], pids=pids)
        return not remaining

    def _put_all(self, path: str, writes: list[Write]) -> None:
        for write in writes:
            self._put(path, write)

    def _put(self, path: str, write: Write) -> None:
        file = self._directory(write.controller, path) / write.file
        try:
            _overwrite(file, f"{write.text}\n")
        except OSError as error:
            raise KernelFault(str(file), f"cannot write {write.text}: {error.strerror}") from error

    def _directories(self, path: str) -> list[Path]:
        return [self._directory(each, path) for each in self.layout.hierarchies]

    def _directory(self, controller: str, path: str) -> Path:
        return Path(self.layout.directory(controller, path))

    def _make(self, controller: str, directory: Path) -> None:
        try:
            if self.layout.version == 2:
                _hand_down(directory.parent, self.layout.controllers)
            directory.mkdir(exist_ok=True)
            if self.layout.version == 1 and controller == "cpuset":
                _inherit_cpuset(directory)
        except OSError as error:
            kind = UnsuitableKernel if error.errno in _UNSUITABLE else KernelFault
            raise kind(str(directory), f"cannot make the cgroup: {error.strerror}") from error


def _overwrite(file: Path, text: str) -> None:
    """As the kernel's files are written, and never making one. Raises OSError."""
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _hand_down(directory: Path, controllers: tuple[str, ...]) -> None:
    """Let the children of a v2 cgroup be limited; it must then hold no process itself. Raises OSError."""
    control = directory / "cgroup.subtree_control"
    lacking = [each for each in controllers if each not in control.read_text().split()]
    if lacking:
        control.write_text(" ".join(f"+{each}" for each in lacking))


def _inherit_cpuset(directory: Path) -> None:
    """A v1 cpuset is born empty and takes no task until it has CPUs and memory nodes."""
    for knob in ("cpuset.cpus", "cpuset.mems"):
        if not (directory / knob).read_text().strip():
            (directory / knob).write_text((directory.parent / knob).read_text())
