"""A cgroup tree like a kubelet's, of the benchmark's own name: made for a run, removed at its end."""

from __future__ import annotations

import hashlib
import os
import re
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from agent.core.observe.files import Role
from bench.hierarchies import Hierarchies
from embedded.cgroups import trees
from model.fault import KernelFault

CONTAINERS_PER_POD = 2
_PREFIX = "sublet-bench-"
_REMOVE_BOUND_SECONDS = 60.0
_REMOVE_RETRY_SECONDS = 0.05


class PodCgroups(msgspec.Struct, frozen=True):
    """One pod's cgroups; `tier` is the QoS directory it lies in, `containers` are container ids."""

    uid: str
    tier: str
    containers: tuple[str, ...]


def tier_of(index: int) -> str:
    """Every third pod is best effort."""
    return "besteffort" if index % 3 == 2 else "burstable"


def place(index: int, uid: str = "") -> PodCgroups:
    """The pod of this number; names are the same in every run unless the API server gave a uid."""
    own = uid or str(uuid.uuid5(uuid.NAMESPACE_OID, f"{_PREFIX}{index}"))
    ids = tuple(hashlib.sha256(f"{own}/{number}".encode()).hexdigest() for number in range(CONTAINERS_PER_POD))
    return PodCgroups(own, tier_of(index), ids)


class BenchTree:
    """`with BenchTree(…) as tree` makes the cgroups; leaving ends what runs in them and removes them.

    Raises KernelFault where the kernel refuses either.
    """

    def __init__(self, hierarchies: Hierarchies, pods: Sequence[PodCgroups]) -> None:
        self.hierarchies = hierarchies
        self._top = f"/{_PREFIX}{os.getpid()}"
        self.kubepods = f"{self._top}/kubepods"
        self._tiers = (f"{self.kubepods}/burstable", f"{self.kubepods}/besteffort")
        self.pods = tuple(f"{self.kubepods}/{pod.tier}/pod{pod.uid}" for pod in pods)
        self.containers = tuple(
            f"{parent}/{container}" for parent, pod in zip(self.pods, pods, strict=True) for container in pod.containers
        )

    @property
    def roles(self) -> dict[str, Role]:
        """What the agent's reader is told about every cgroup."""
        kinds = {"burstable": Role.POD, "besteffort": Role.BEST_EFFORT_POD}
        roots = dict.fromkeys((self.kubepods, *self._tiers), Role.ROOT)
        pods = {cgroup: kinds[cgroup.split("/")[3]] for cgroup in self.pods}
        return {**roots, **pods, **dict.fromkeys(self.containers, Role.CONTAINER)}

    def directories(self, cgroup: str) -> list[Path]:
        """One a hierarchy."""
        return [Path(f"{mount}{cgroup}") for mount in self.hierarchies.mounts.values()]

    def __enter__(self) -> BenchTree:
        remove_stale(self.hierarchies)
        parents = (self._top, self.kubepods, *self._tiers, *self.pods)
        try:
            for controller, mount in self.hierarchies.mounts.items():
                if not controller:
                    _delegate(mount)
                for cgroup in (*parents, *self.containers):
                    _make(Path(f"{mount}{cgroup}"), controller)
                    if not controller and cgroup in parents:
                        _delegate(Path(f"{mount}{cgroup}"))
        except OSError as error:
            self.__exit__(None, None, None)
            fix = "is this the host's own, writable cgroup tree?"
            raise KernelFault(str(error.filename), f"cannot be made: {error.strerror}", fix) from error
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        remove(self.directories(self._top))


def _make(directory: Path, controller: str) -> None:
    directory.mkdir(exist_ok=True)
    if controller == "cpuset":
        # Empty at first, and no process may enter until it is filled.
        for name in ("cpuset.cpus", "cpuset.mems"):
            (directory / name).write_text((directory.parent / name).read_text())


def _delegate(directory: Path) -> None:
    """Give children of a v2 cgroup the controllers."""
    (directory / "cgroup.subtree_control").write_text("+cpu +memory")


def remove(tops: Sequence[Path]) -> None:
    """End what runs inside and remove the trees. Raises KernelFault naming what resisted for a minute."""
    deadline = time.monotonic() + _REMOVE_BOUND_SECONDS
    while True:
        trees.kill(tops)
        remaining = trees.remove_empty(tops)
        if not remaining:
            return
        if time.monotonic() > deadline:
            raise KernelFault(str(remaining[0]), "could not be removed", "see what runs in its cgroup.procs")
        # A killed process stays a member until it is reaped, and rmdir answers EBUSY so long.
        time.sleep(_REMOVE_RETRY_SECONDS)


def remove_stale(hierarchies: Hierarchies) -> None:
    """Remove the trees of benchmarks whose process is gone: one ended by SIGKILL could not do it itself."""
    for mount in hierarchies.mounts.values():
        for top in mount.glob(f"{_PREFIX}*"):
            owner = re.fullmatch(rf"{_PREFIX}(\d+)", top.name)
            if owner and not Path(f"/proc/{owner[1]}").exists():
                remove([top])
