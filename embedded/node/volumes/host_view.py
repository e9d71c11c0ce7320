"""What a hostPath volume shows to pods with an image: their node where it is only a part of this machine.

/sys/fs/cgroup      the node's own tree, as if its prefix were the root (v1: each controller's below a tmpfs)
/proc, /sys         the machine's, with what the node claims of it in the places of stat, meminfo and the CPUs
/var/lib/kubelet    the node's own state directory
/var/lib/sublet,    made in the node's run directory, also where the machine has them: an agent of the machine's own
/run/sublet         keeps there what it must put back, and no two nodes' agents may share them
what is not there   and may be made is made in the node's run directory, and goes with it
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from embedded.cgroups.layout import Layout

_CGROUPS, _PROC, _SYS, _KUBELET = Path("/sys/fs/cgroup"), Path("/proc"), Path("/sys"), Path("/var/lib/kubelet")
_AGENT = (Path("/var/lib/sublet"), Path("/run/sublet"))
_CPUS = "devices/system/cpu"


class Mount(msgspec.Struct, frozen=True):
    """`source` of the machine appears at `target` in the container; without a source it is a fresh tmpfs."""

    target: str
    source: str
    read_only: bool


class HostView(msgspec.Struct, frozen=True):
    """`shown` has `proc` and `sys` where the node is not all of the machine; see view."""

    run_dir: Path
    layout: Layout
    shown: Path | None = None

    def make(self) -> None:
        """Raises OSError."""
        (self.run_dir / "kubelet").mkdir(parents=True, exist_ok=True)

    def place(self, path: Path) -> Path:
        """Where a hostPath is: it may not exist yet."""
        if path.is_relative_to(_KUBELET):
            return self.run_dir / "kubelet" / path.relative_to(_KUBELET)
        own = any(path.is_relative_to(each) for each in _AGENT)
        return path if path.exists() and not own else self.run_dir / "host" / path.relative_to("/")

    def mounts(self, path: Path, target: str, read_only: bool) -> list[Mount]:
        """What to mount for a hostPath that is asked for as a whole."""
        if path == _CGROUPS:
            return self._cgroups(target, read_only)
        whole = Mount(target, str(self.place(path)), read_only)
        if path == _PROC:
            return [whole, *self.part_of_proc(target)]
        if path == _SYS:
            return [whole, *self._part_of_sys(target), *self._cgroups(f"{target}/fs/cgroup", read_only)]
        return [whole]

    def part_of_proc(self, target: str) -> list[Mount]:
        if self.shown is None:
            return []
        return [Mount(f"{target}/{name}", f"{self.shown}/proc/{name}", True) for name in ("stat", "meminfo")]

    def _part_of_sys(self, target: str) -> list[Mount]:
        """The node's CPUs are links to the machine's own places: over these very places they would
        lead nowhere.
        """
        if self.shown is None:
            return []
        what = f"{_CPUS}/online" if Path(target) == _SYS else _CPUS
        return [Mount(f"{target}/{what}", f"{self.shown}/sys/{what}", True)]

    def _cgroups(self, target: str, read_only: bool) -> list[Mount]:
        prefix = self.layout.prefix
        if self.layout.version == 2:
            return [Mount(target, str(self.layout.directory("", prefix)), read_only)]
        trees = {each: str(self.layout.directory(each, prefix)) for each in self.layout.controllers}
        return [Mount(target, "", False), *(Mount(f"{target}/{name}", tree, read_only) for name, tree in trees.items())]
