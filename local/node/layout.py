"""Where each pod and container lives: the kubelet's cgroupfs layout under a prefix of our own.

    /sublet-<id>/kubepods/pod<uid>/<container id>               Guaranteed
    /sublet-<id>/kubepods/burstable/pod<uid>/<container id>
    /sublet-<id>/kubepods/besteffort/pod<uid>/<container id>

The same path exists in every controller's hierarchy. Paths start at the hierarchy's mount, not at this process's own
cgroup: the process may sit deep in one hierarchy and at the root of the next.
"""

from __future__ import annotations

from pathlib import PurePosixPath

import msgspec

from model.qos import KubernetesQoS

CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "blkio", "pids", "freezer", "unified")
REQUIRED_CONTROLLERS = ("cpu", "memory")

_QOS_PARENT = {
    KubernetesQoS.GUARANTEED: "",
    KubernetesQoS.BURSTABLE: "burstable",
    KubernetesQoS.BEST_EFFORT: "besteffort",
}


class Layout(msgspec.Struct, frozen=True):
    """Path arithmetic only; `root` is where the hierarchies are mounted, `controllers` those that exist."""

    root: PurePosixPath
    id: str
    controllers: tuple[str, ...] = CONTROLLERS

    @property
    def prefix(self) -> str:
        return f"/sublet-{self.id}"

    @property
    def kubepods(self) -> str:
        return f"{self.prefix}/kubepods"

    def qos(self, qos: KubernetesQoS) -> str:
        """The parent of all pods of one class."""
        return f"{self.kubepods}/{_QOS_PARENT[qos]}".rstrip("/")

    def pod(self, qos: KubernetesQoS, uid: str) -> str:
        return f"{self.qos(qos)}/pod{_safe(uid)}"

    def container(self, qos: KubernetesQoS, uid: str, container_id: str) -> str:
        return f"{self.pod(qos, uid)}/{_safe(container_id)}"

    def directory(self, controller: str, path: str) -> PurePosixPath:
        """The directory of a cgroup path in one hierarchy. Raises ValueError for a path outside our prefix."""
        if path != self.prefix and not path.startswith(self.prefix + "/"):
            raise ValueError(f"{path} is outside {self.prefix}")
        return self.root / controller / path.removeprefix("/")


def _safe(name: str) -> str:
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"{name!r} cannot name a cgroup")
    return name
