"""CPU account: which whole CPUs of a node the pods charged there have, by pod."""

from __future__ import annotations

from collections.abc import Mapping

from model.cpubinding import BoundCpus

_NOBODY: Mapping[str, BoundCpus] = {}


class CpuAccount:
    """Node → uid → CPUs. Most nodes have no such pod, and cost nothing."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, BoundCpus]] = {}

    def of(self, node: str) -> Mapping[str, BoundCpus]:
        """Who has which CPUs of a node; not to be written to."""
        return self._by_node.get(node, _NOBODY)

    def add(self, node: str, uid: str, cpus: BoundCpus) -> None:
        self._by_node.setdefault(node, {})[uid] = cpus

    def remove(self, node: str, uid: str) -> None:
        """Where the pod has none there, nothing changes."""
        found = self._by_node.get(node)
        if found is not None and found.pop(uid, None) is not None and not found:
            del self._by_node[node]
