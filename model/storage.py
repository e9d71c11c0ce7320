"""Volumes as far as they decide where a pod may run."""

from __future__ import annotations

import msgspec

from model.pod.affinity import NodeTerm


class Volume(msgspec.Struct, frozen=True):
    """A PersistentVolume: nodes one of whose terms matches can reach it; None: all nodes."""

    name: str
    nodes: tuple[NodeTerm, ...] | None = None


class VolumeClaim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim and the name of the volume it is bound to, empty while it is not bound."""

    namespace: str
    name: str
    volume: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"
