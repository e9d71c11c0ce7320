"""Believed offers of nodes, judged again when people allow other CPU ratios."""

from __future__ import annotations

from kube.dialects.koordinator.labels import ANNOTATION_NORMALIZATION
from kube.dialects.koordinator.offer import AllowedRatios, allowed_ratios, offer
from kube.informer import Change, ChangeKind
from kube.objects import ConfigMap, Metadata
from model.fault import ConfigurationFault
from model.node import Node
from scheduler.cache.refusals import Refusals


class Offers:
    """`doubts` is what of a node's offer is not believed and why, by node. `ratio` is the largest CPU ratio that is
    believed where there is no `slo-controller-config`.
    """

    def __init__(self, refusals: Refusals, ratio: float) -> None:
        self.doubts: dict[str, str] = {}
        self._refusals = refusals
        self._allowed = AllowedRatios(ratio)
        self._faster: dict[str, tuple[Node, Metadata]] = {}

    def judged(self, node: Node, metadata: Metadata) -> Node:
        """The node with what of its offer is possible; what is not is told, and kept for whoever asks why."""
        self._faster.pop(node.name, None)
        if ANNOTATION_NORMALIZATION in node.annotations:
            self._faster[node.name] = node, metadata
        found, where = offer(node, self._allowed), f"Node {node.name}"
        if found.doubt:
            self.doubts[node.name] = found.doubt
            self._refusals.add(where, metadata, f"{where}: {found.doubt}")
        elif self.doubts.pop(node.name, None):
            self._refusals.settled(where)
        return found.node

    def forget(self, name: str) -> None:
        """The node is gone, or cannot be read."""
        self.doubts.pop(name, None)
        self._faster.pop(name, None)

    def configured(self, change: Change[ConfigMap]) -> list[Node]:
        """Nodes that claim a ratio, judged again by `slo-controller-config`; an unreadable one changes nothing."""
        metadata = change.object.metadata
        source = None if change.kind is ChangeKind.DELETED else change.object
        where = f"ConfigMap {metadata.namespace}/{metadata.name}"
        try:
            self._allowed = allowed_ratios(self._allowed.otherwise, source)
            self._refusals.settled(where)
        except ConfigurationFault as fault:
            self._refusals.add(where, metadata, f"{fault}; the CPU ratios it allowed before stay in force")
            return []
        return [self.judged(node, metadata) for node, metadata in list(self._faster.values())]
