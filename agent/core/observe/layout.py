"""Cgroup layout: where pods live, as paths below a controller's mount (v1) or the tree's root (v2).

    cgroupfs   /kubepods[/burstable|/besteffort]/pod<uid>/<container>
    systemd    /kubepods.slice[/kubepods-burstable.slice]/kubepods-burstable-pod<uid, - as _>.slice/<runtime>-<id>.scope

A kubelet with its own cgroup root puts all of it below: /kubelet/kubepods, /kubelet.slice/kubelet-kubepods.slice.
Source: Koordinator pkg/koordlet/util/system/cgroup_driver*.go, kubelet pkg/kubelet/cm/cgroup_manager_linux.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from model.fault import KernelFault
from model.qos import KubernetesQoS


class CgroupDriver(StrEnum):
    """The maker of the kubelet's cgroups; it decides how their directories are named."""

    CGROUPFS = "cgroupfs"
    SYSTEMD = "systemd"


SERVICES = "/system.slice"
"""Where systemd has the node's own services, kubelet and runtime among them; a node without it has no such cgroup."""
_SLICE = ".slice"
_CLASS = {KubernetesQoS.BURSTABLE: "burstable", KubernetesQoS.BEST_EFFORT: "besteffort"}
_SCOPE = re.compile(r"(?:cri-containerd|crio|docker|pouch)-(?!conmon-)(.+)\.scope", re.DOTALL)
_KUBEPODS = re.compile(r"(?:.*/)?(?:kubepods|(?:[^/]+-)?kubepods\.slice)")
_FIX = "is kubelet running here? give --kubepods its path"


class Layout(msgspec.Struct, frozen=True):
    """`root` is the kubepods directory, e.g. `/kubepods`; `version` the cgroup version, 1 or 2."""

    root: str = "/kubepods"
    version: int = 1
    driver: CgroupDriver = CgroupDriver.CGROUPFS

    @property
    def best_effort(self) -> str:
        return self.class_root(KubernetesQoS.BEST_EFFORT)

    @property
    def burstable(self) -> str:
        return self.class_root(KubernetesQoS.BURSTABLE)

    @property
    def above_pods(self) -> tuple[str, ...]:
        """The cgroups whose limits hold for every pod: kubepods, and what it may stand in."""
        steps = self.root.split("/")
        return tuple("/".join(steps[:count]) for count in range(len(steps), 1, -1))

    def class_root(self, qos: KubernetesQoS) -> str:
        """The parent of all pods of one class; Guaranteed pods sit directly below the root."""
        name = _CLASS.get(qos)
        if name is None:
            return self.root
        return f"{self.root}/{name}" if self.driver is CgroupDriver.CGROUPFS else f"{self.root}/{self._slice(name)}"

    def pod(self, qos: KubernetesQoS, cgroup_uid: str) -> str:
        """A pod's directory."""
        if self.driver is CgroupDriver.CGROUPFS:
            return f"{self.class_root(qos)}/pod{cgroup_uid}"
        last = f"pod{cgroup_uid.replace('-', '_')}"
        return f"{self.class_root(qos)}/{self._slice(f'{_CLASS[qos]}-{last}' if qos in _CLASS else last)}"

    def pod_uid_of(self, directory: str) -> str | None:
        """The uid (a static pod's: its configuration hash) that a directory's name stands for; None: no pod's."""
        if self.driver is CgroupDriver.CGROUPFS:
            return directory[3:] or None if directory.startswith("pod") else None
        start = f"{self._prefix}-"
        if not directory.startswith(start) or not directory.endswith(_SLICE):
            return None
        name = directory.removeprefix(start).removesuffix(_SLICE)
        name = name.removeprefix("burstable-").removeprefix("besteffort-")
        return name[3:].replace("_", "-") or None if name.startswith("pod") else None

    def container_id_of(self, directory: str) -> str | None:
        """The runtime's container id of a directory in a pod's; None where it is no container's.

        cri-o's `crio-conmon-…` holds its monitor, not the container.
        """
        if self.driver is CgroupDriver.SYSTEMD:
            scope = _SCOPE.fullmatch(directory)
            return scope[1] if scope else None
        return None if directory.startswith("crio-conmon-") else directory.removeprefix("crio-") or None

    @property
    def _prefix(self) -> str:
        """systemd repeats the parents' names in each child's."""
        return self.root.rsplit("/", 1)[-1].removesuffix(_SLICE)

    def _slice(self, name: str) -> str:
        return f"{self._prefix}-{name}{_SLICE}"


class PodDirectory(msgspec.Struct, frozen=True):
    """A pod's cgroup that exists, and its containers' by runtime id; paths as in `Layout`."""

    path: str
    containers: Mapping[str, str] = {}


def detect(
    mount: str, version: int, directories: Iterable[str], root: str = "", driver: CgroupDriver | None = None
) -> Layout:
    """The layout of this node, from the `directories` that exist below `mount`.

    `root` and `driver` are the operator's words and win. Raises KernelFault where nothing or too much is found.
    """
    found = sorted(path for path in directories if _KUBEPODS.fullmatch(path))
    if root:
        if root not in directories:
            raise KernelFault(f"{mount}{root}", "does not exist", _FIX)
        found = [root]
    if driver is not None:
        found = [path for path in found if driver_of(path) is driver] if not root else found
    if not found:
        raise KernelFault(mount, "holds no kubepods cgroup", _FIX)
    if len(found) > 1:
        raise KernelFault(mount, f"holds several kubepods cgroups: {', '.join(found)}", "say which by --kubepods")
    return Layout(found[0], version, driver or driver_of(found[0]))


def driver_of(root: str) -> CgroupDriver:
    """By name: only systemd makes slices."""
    return CgroupDriver.SYSTEMD if root.endswith(_SLICE) else CgroupDriver.CGROUPFS
