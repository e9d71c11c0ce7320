"""Where each pod and container lives: the kubelet's layout under a prefix of our own, named as either driver names it.

    cgroupfs  /sublet-<id>/kubepods[/burstable|/besteffort]/pod<uid>/<container id>
    systemd   /sublet_<id>.slice/sublet_<id>-kubepods.slice[/sublet_<id>-kubepods-burstable.slice]
              /sublet_<id>-kubepods-burstable-pod<uid, - as _>.slice/cri-containerd-<container id>.scope

On v1 the same path exists in every controller's hierarchy. Paths start at the hierarchy's mount, not at this process's
own cgroup: the process may sit deep in one hierarchy and at the root of the next. systemd reads a dash as a level, so
the kubelet writes those of a name (here of the prefix and the uid) as underscores.
Source: kubernetes pkg/kubelet/cm/cgroup_manager_linux.go.
"""

from __future__ import annotations

from pathlib import PurePosixPath

import msgspec

from agent.core.observe.layout import CgroupDriver
from model.qos import KubernetesQoS

CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "blkio", "pids", "freezer", "unified")
V2_CONTROLLERS = ("cpu", "memory", "cpuset", "io", "pids")
REQUIRED_CONTROLLERS = ("cpu", "memory")

_QOS_PARENT = {
    KubernetesQoS.GUARANTEED: "",
    KubernetesQoS.BURSTABLE: "burstable",
    KubernetesQoS.BEST_EFFORT: "besteffort",
}


class Layout(msgspec.Struct, frozen=True):
    """Path arithmetic only; `root` is where cgroups are mounted, `controllers` those that work there.

    `version` is the cgroup version: 1 has a hierarchy for each controller, 2 one for all.
    """

    root: PurePosixPath
    id: str
    controllers: tuple[str, ...] = CONTROLLERS
    version: int = 1
    driver: CgroupDriver = CgroupDriver.CGROUPFS

    @property
    def hierarchies(self) -> tuple[str, ...]:
        """Controllers that each have a directory of a cgroup; one stands for all on v2."""
        return self.controllers if self.version == 1 else self.controllers[:1]

    @property
    def prefix(self) -> str:
        return prefix_of(self.id, self.driver)

    @property
    def kubepods(self) -> str:
        return self._below(self.prefix, "kubepods")

    def qos(self, qos: KubernetesQoS) -> str:
        """The parent of all pods of one class."""
        name = _QOS_PARENT[qos]
        return self._below(self.kubepods, name) if name else self.kubepods

    def pod(self, qos: KubernetesQoS, uid: str) -> str:
        return self._below(self.qos(qos), f"pod{_safe(uid)}")

    def container(self, qos: KubernetesQoS, uid: str, container_id: str) -> str:
        name = _safe(container_id)
        return f"{self.pod(qos, uid)}/{f'cri-containerd-{name}.scope' if self._systemd else name}"

    def directory(self, controller: str, path: str) -> PurePosixPath:
        """The directory of a cgroup path in one hierarchy. Raises ValueError for a path outside our prefix."""
        if path != self.prefix and not path.startswith(self.prefix + "/"):
            raise ValueError(f"{path} is outside {self.prefix}")
        tree = self.root if self.version == 2 else self.root / controller
        return tree / path.removeprefix("/")

    @property
    def _systemd(self) -> bool:
        return self.driver is CgroupDriver.SYSTEMD

    def _below(self, parent: str, name: str) -> str:
        """systemd repeats the parents' names in each child's."""
        if not self._systemd:
            return f"{parent}/{name}"
        stem = parent.rsplit("/", 1)[-1].removesuffix(".slice")
        return f"{parent}/{stem}-{name.replace('-', '_')}.slice"


def prefix_of(id_: str, driver: CgroupDriver) -> str:
    """The path of the cgroup that holds everything of a node."""
    name = f"sublet-{id_}"
    return f"/{name}" if driver is CgroupDriver.CGROUPFS else f"/{name.replace('-', '_')}.slice"


def _safe(name: str) -> str:
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"{name!r} cannot name a cgroup")
    return name
