"""Plan of NodeMetrics and NodeSLOs to create or change: from the Nodes, the documents and what exists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kube import objects
from kube.dialects.coverage.asking_settings import in_config
from kube.dialects.documents.document import annotated
from kube.dialects.koordinator import nodeobjects
from kube.dialects.koordinator.nodesettings import ANNOTATION_STRATEGY
from kube.dialects.koordinator.sloconfig import ColocationFields
from model.fault import ConfigurationFault
from model.reason import Reason, words

GROUP = "slo.koordinator.sh/v1alpha1"
PLURALS = {"NodeMetric": "nodemetrics", "NodeSLO": "nodeslos"}
MANAGED_BY = {"app.kubernetes.io/managed-by": "sublet"}


class Present(msgspec.Struct, frozen=True):
    """An object as it is; one that is not `managed` is somebody's word, and left alone."""

    uid: str
    managed: bool
    spec: Any


class NodeFacts(msgspec.Struct, frozen=True):
    """What decides how a Node's objects are to look."""

    uid: str
    labels: Mapping[str, str]
    strategy: str


class ObjectWrite(msgspec.Struct, frozen=True):
    """An object of a Node (`name`, `node_uid`) that is to have this spec; `present` is None where it is to be made."""

    kind: str
    name: str
    node_uid: str
    spec: dict[str, Any]
    present: Present | None = None

    @property
    def made(self) -> dict[str, Any]:
        """The new object, which ends with its Node."""
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": self.node_uid}
        return {
            "apiVersion": GROUP,
            "kind": self.kind,
            "metadata": {"name": self.name, "labels": MANAGED_BY, "ownerReferences": [owner]},
            "spec": self.spec,
        }

    @property
    def patch(self) -> list[dict[str, Any]]:
        """Replaces the spec, only while it is the very object that was seen."""
        return [
            {"op": "test", "path": "/metadata/uid", "value": self.present.uid if self.present else ""},
            {"op": "add", "path": "/spec", "value": self.spec},
        ]


def node_facts(meta: objects.Metadata) -> NodeFacts:
    """Of a Node; a heartbeat changes none of them."""
    return NodeFacts(meta.uid, meta.labels or {}, (meta.annotations or {}).get(ANNOTATION_STRATEGY, ""))


def present(meta: objects.Metadata, spec: Any) -> Present:
    """Of an object; a report of the agent's changes nothing of it."""
    return Present(meta.uid, MANAGED_BY.items() <= (meta.labels or {}).items(), spec)


def plan(
    name: str,
    node: NodeFacts,
    there: Mapping[str, Present],
    documents: nodeobjects.NodeDocuments,
    undefined: Collection[str],
) -> Iterator[ObjectWrite]:
    """A write for each object of the Node that is not as it should be; `there` is by kind, `undefined` kinds rest."""
    for kind, spec in _specs(name, node, documents).items():
        found = there.get(kind)
        differs = found is None or (found.managed and (found.spec or {}) != spec)
        if differs and kind not in undefined:
            yield ObjectWrite(kind, name, node.uid, spec, found)


def told(source: objects.ConfigMap, faults: Iterable[ConfigurationFault]) -> Iterator[tuple[Reason, str]]:
    """Events on the ConfigMap: what of it cannot be read, and what nobody acts on."""
    yield from ((Reason.CONFIGURATION_INVALID, str(fault)) for fault in faults)
    names = [asked.row.name for asked in in_config(source)]
    if names:
        yield Reason.NOT_ACTED_ON, f"{words(Reason.NOT_ACTED_ON)}: {', '.join(names)}"


def _specs(name: str, node: NodeFacts, documents: nodeobjects.NodeDocuments) -> dict[str, dict[str, Any]]:
    try:
        own = annotated({ANNOTATION_STRATEGY: node.strategy}, ANNOTATION_STRATEGY, ColocationFields, f"Node {name}")
    except ConfigurationFault:
        own = None  # the node's agent tells it
    return {
        "NodeMetric": nodeobjects.node_metric_spec(documents, node.labels, own),
        "NodeSLO": nodeobjects.node_slo_spec(documents, node.labels),
    }
