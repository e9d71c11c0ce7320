"""A node's cgroups as a kubelet makes them: two classes, pods with one container, weights by request."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from bench.hierarchies import Hierarchies
from bench.tree import remove, remove_stale
from embedded.cgroups.ceilings import shares
from model.fault import KernelFault

_MOST_SHARES, _MOST_WEIGHT, _LEAST_SHARES = 262_144, 10_000, 2
_DELEGATED = ("cpuset", "cpu", "memory")


class Home(msgspec.Struct, frozen=True):
    """Where one pod lives: `tier` is its class's directory."""

    name: str
    uid: str
    tier: str
    container_id: str
    cpu_millis: int = 0


class NodeTree:
    """`with NodeTree(…) as tree` makes the cgroups of one node; leaving ends what runs in them and removes them.

    Raises KernelFault where the kernel refuses.
    """

    def __init__(self, hierarchies: Hierarchies, cpus: int) -> None:
        self.hierarchies = hierarchies
        self._cpus = cpus
        self._top = f"/sublet-bench-{os.getpid()}"
        self.kubepods = f"{self._top}/kubepods"
        self.burstable, self.besteffort = f"{self.kubepods}/burstable", f"{self.kubepods}/besteffort"

    def __enter__(self) -> NodeTree:
        remove_stale(self.hierarchies)
        try:
            if self.hierarchies.version == 2:
                self._delegate(self.hierarchies.mounts[""])
            for cgroup in (self._top, self.kubepods, self.burstable, self.besteffort):
                self._make(cgroup)
            for cgroup in (self._top, self.kubepods):
                self.weigh(cgroup, self._cpus * 1000)
            self.weigh(self.besteffort, 0)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        remove(self.directories(self._top))

    def add(self, homes: Sequence[Home]) -> None:
        """Make the pods' cgroups; the burstable class weighs as much as these pods request, as with a kubelet."""
        for home in homes:
            self._make(self.pod(home))
            self._make(self.container(home), leaf=True)
            for cgroup in (self.pod(home), self.container(home)):
                self.weigh(cgroup, home.cpu_millis)
        self.weigh(self.burstable, sum(home.cpu_millis for home in homes if home.tier == "burstable"))

    def beside(self, name: str, cpu_millis: int) -> list[Path]:
        """A cgroup beside kubepods with the weight of that request, for what is no pod of ours; one a hierarchy."""
        cgroup = f"{self._top}/{name}"
        self._make(cgroup, leaf=True)
        self.weigh(cgroup, cpu_millis)
        return self.directories(cgroup)

    def enter(self, home: Home, pid: int) -> None:
        """A process that runs already goes on in the pod's container."""
        for directory in self.directories(self.container(home)):
            self._write(directory / "cgroup.procs", str(pid))

    def discard(self, home: Home) -> None:
        """End the pod's processes and remove its cgroups."""
        remove(self.directories(self.pod(home)))

    def nudge(self) -> None:
        """A pod's cgroup that comes and goes, for whoever is woken by that."""
        for directory in self.directories(f"{self.burstable}/podnudge"):
            directory.mkdir()
            directory.rmdir()

    def pod(self, home: Home) -> str:
        return f"{self.kubepods}/{home.tier}/pod{home.uid}"

    def container(self, home: Home) -> str:
        return f"{self.pod(home)}/{home.container_id}"

    def directories(self, cgroup: str) -> list[Path]:
        """One a hierarchy."""
        return [Path(f"{mount}{cgroup}") for mount in self.hierarchies.mounts.values()]

    def file(self, cgroup: str, controller: str, name: str) -> Path:
        """A control file: below its controller's mount on v1."""
        mounts = self.hierarchies.mounts
        return Path(f"{mounts[controller if self.hierarchies.version == 1 else '']}{cgroup}/{name}")

    @property
    def quota_file(self) -> Path:
        """The best-effort class's CPU ceiling."""
        name = "cpu.cfs_quota_us" if self.hierarchies.version == 1 else "cpu.max"
        return self.file(self.besteffort, "cpu", name)

    def weigh(self, cgroup: str, cpu_millis: int) -> None:
        """The weight of a request; without one the kernel's least."""
        wanted = shares(cpu_millis)
        if self.hierarchies.version == 1:
            self._write(self.file(cgroup, "cpu", "cpu.shares"), str(wanted))
            return
        # KEP-2254's line through (2, 1) and (262144, 10000).
        weight = 1 + (wanted - _LEAST_SHARES) * (_MOST_WEIGHT - 1) // (_MOST_SHARES - _LEAST_SHARES)
        self._write(self.file(cgroup, "cpu", "cpu.weight"), str(weight))

    def limit_memory(self, cgroup: str, limit_bytes: int) -> None:
        name = "memory.limit_in_bytes" if self.hierarchies.version == 1 else "memory.max"
        self._write(self.file(cgroup, "memory", name), str(limit_bytes))

    def cpu_seconds(self, cgroup: str = "") -> float:
        """CPU time of everything in the cgroup and below; of the whole machine by default."""
        if self.hierarchies.version == 1:
            return int(self.file(cgroup, "cpuacct", "cpuacct.usage").read_text()) / 1e9
        return _keyed(self.file(cgroup, "", "cpu.stat"), "usage_usec") / 1e6

    def oom_kills(self, cgroup: str) -> int:
        """Processes in this cgroup (v2: and below) that the kernel killed for want of memory."""
        name = "memory.oom_control" if self.hierarchies.version == 1 else "memory.events"
        return _keyed(self.file(cgroup, "memory", name), "oom_kill")

    def memory_peak_mib(self, cgroup: str) -> int:
        """The most it held since it was made; 0 where this kernel does not tell."""
        name = "memory.max_usage_in_bytes" if self.hierarchies.version == 1 else "memory.peak"
        path = self.file(cgroup, "memory", name)
        return int(path.read_text()) >> 20 if path.exists() else 0

    def _make(self, cgroup: str, *, leaf: bool = False) -> None:
        for controller, mount in self.hierarchies.mounts.items():
            directory = Path(f"{mount}{cgroup}")
            try:
                directory.mkdir(exist_ok=True)
                if controller == "cpuset":
                    # Empty at first, and no process may enter until it is filled.
                    for name in ("cpuset.cpus", "cpuset.mems"):
                        (directory / name).write_text((directory.parent / name).read_text())
                if self.hierarchies.version == 2 and not leaf:
                    self._delegate(directory)
            except OSError as error:
                fix = "is this the host's own, writable cgroup tree?"
                raise KernelFault(str(directory), f"cannot be made: {error.strerror}", fix) from error

    def _delegate(self, directory: Path) -> None:
        """Give children of a v2 cgroup the controllers there are."""
        offered = (directory / "cgroup.controllers").read_text().split()
        wanted = " ".join(f"+{name}" for name in _DELEGATED if name in offered)
        self._write(directory / "cgroup.subtree_control", wanted)

    def _write(self, path: Path, text: str) -> None:
        try:
            path.write_text(text)
        except OSError as error:
            raise KernelFault(str(path), f"{text} was refused: {error.strerror}") from error


def _keyed(path: Path, key: str) -> int:
    """0 where the file has no such line, or its cgroup is gone."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{key} ")), 0)
