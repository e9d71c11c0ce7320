"""The settings of one node from every document that speaks of it, in Koordinator's order.

Reading and merging are apart: each document is read by itself, so that a broken one keeps its last good content while
all others, a switch to off among them, take effect. Merging cannot fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kube import objects
from kube.dialects import koordinator
from kube.dialects.document import checked, parsed
from kube.dialects.nodemetric import collect_policy
from kube.dialects.nodeslo import HostApplicationFields, NodeSLOFields, SuppressFields, host_application, node_slo
from kube.dialects.sloconfig import (
    CollectPolicy,
    ColocationFields,
    Layers,
    NormalizationFields,
    colocation_layers,
    colocation_overlaid,
    host_application_layers,
    normalization_layers,
    normalization_overlaid,
    suppress_layers,
    suppress_overlaid,
)
from model.fault import ConfigurationFault
from model.node import Node
from model.nodecolocation import NodeColocation
from model.nodesettings import NodeSettings
from model.strategy import ColocationStrategy, HostApplication, NormalizationStrategy, SuppressStrategy

ANNOTATION_STRATEGY = "node.koordinator.sh/colocation-strategy"
_RATIO_LABELS = {
    "node.koordinator.sh/cpu-reclaim-ratio": "cpuReclaimThresholdPercent",
    "node.koordinator.sh/memory-reclaim-ratio": "memoryReclaimThresholdPercent",
    "node.koordinator.sh/mid-static-cpu-reserved-ratio": "midStaticCPUReservedPercent",
    "node.koordinator.sh/mid-static-memory-reserved-ratio": "midStaticMemoryReservedPercent",
}
_RATIO = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?")


class Sources(msgspec.Struct, frozen=True):
    """The objects as they are now; None where there is none."""

    node: Node | None = None
    config_map: objects.ConfigMap | None = None
    slo: objects.NodeSLO | None = None
    metric: objects.NodeMetric | None = None


class Documents(msgspec.Struct, frozen=True):
    """What was read of them. `unread` are those that were never readable since the first look."""

    colocation: Layers[ColocationFields] | None = None
    normalization: Layers[NormalizationFields] | None = None
    suppress: Layers[SuppressFields] | None = None
    host_applications: Layers[HostApplicationFields] | None = None
    slo: NodeSLOFields | None = None
    collect: CollectPolicy | None = None
    annotated: ColocationFields | None = None
    ratios: ColocationFields | None = None
    node: NodeColocation = NodeColocation()
    labels: Mapping[str, str] = {}
    unread: frozenset[str] = frozenset()


_READERS: Mapping[str, Callable[[Sources], Any]] = {
    "colocation": lambda sources: colocation_layers(sources.config_map),
    "normalization": lambda sources: normalization_layers(sources.config_map),
    "suppress": lambda sources: suppress_layers(sources.config_map),
    "host_applications": lambda sources: host_application_layers(sources.config_map),
    "slo": lambda sources: node_slo(sources.slo) if sources.slo else None,
    "collect": lambda sources: collect_policy(sources.metric) if sources.metric else None,
    "annotated": lambda sources: annotated_strategy(sources.node) if sources.node else None,
    "ratios": lambda sources: ratio_labels(sources.node) if sources.node else None,
    "node": lambda sources: koordinator.node_colocation(sources.node) if sources.node else NodeColocation(),
}
_LIMIT_LENDING = frozenset({"colocation", "collect", "annotated", "ratios", "node"})
"""These may ask for less than the defaults lend; without the others the same or less is lent."""


def read(sources: Sources, kept: Documents | None = None) -> tuple[Documents, tuple[ConfigurationFault, ...]]:
    """Every document, and what is wrong with those of which the `kept` content stays.

    The first look is to be taken once all sources are known: what is broken then has no good content to keep.
    """
    found: dict[str, Any] = {}
    faults = []
    unread = set()
    for name, reader in _READERS.items():
        try:
            found[name] = reader(sources)
        except ConfigurationFault as fault:
            faults.append(fault)
            if kept is None or name in kept.unread:
                unread.add(name)
            else:
                found[name] = getattr(kept, name)
    labels = sources.node.labels if sources.node else {}
    return Documents(**found, labels=labels, unread=frozenset(unread)), tuple(faults)


def node_settings(documents: Documents, defaults: NodeSettings, kubepods: str = "/kubepods") -> NodeSettings:
    """Later beats earlier: the defaults, the ConfigMap's cluster values, its first matching node entry, then for
    lending the Node's annotation, its labels and NodeMetric's spec, for the rest the NodeSLO.

    `kubepods` is the pods' root below the controllers' mounts. Nothing is lent while a document that may limit lending
    was never readable.
    """
    return NodeSettings(
        colocation=_colocation(documents, defaults.colocation),
        suppress=_suppress(documents, defaults.suppress),
        normalization=_normalization(documents, defaults.normalization),
        host_applications=_host_applications(documents, defaults.host_applications, kubepods),
    )


def _colocation(documents: Documents, strategy: ColocationStrategy) -> ColocationStrategy:
    if documents.colocation:
        strategy = msgspec.structs.replace(strategy, enable=False)
    layers = documents.colocation.of(documents.labels) if documents.colocation else ()
    for layer in (*layers, documents.annotated, documents.ratios, documents.collect):
        strategy = colocation_overlaid(strategy, layer) if layer else strategy
    return msgspec.structs.replace(strategy, enable=False) if documents.unread & _LIMIT_LENDING else strategy


def _suppress(documents: Documents, strategy: SuppressStrategy) -> SuppressStrategy:
    layers = documents.suppress.of(documents.labels) if documents.suppress else ()
    for layer in (*layers, documents.slo.suppress if documents.slo else None):
        strategy = suppress_overlaid(strategy, layer) if layer else strategy
    return strategy


def _normalization(documents: Documents, strategy: NormalizationStrategy) -> NormalizationStrategy:
    """Ratio 1 is said aloud where a document has no default, so that a ratio left in the Node's annotation ends."""
    if documents.normalization is None:
        return strategy
    strategy = msgspec.structs.replace(strategy, enable=False, default_ratio=strategy.default_ratio or 1.0)
    for layer in documents.normalization.of(documents.labels):
        strategy = normalization_overlaid(strategy, layer)
    return strategy


def _host_applications(
    documents: Documents, defaults: tuple[HostApplication, ...], kubepods: str
) -> tuple[HostApplication, ...]:
    layers = documents.host_applications.of(documents.labels) if documents.host_applications else ()
    told = [*layers, documents.slo.host_applications if documents.slo else HostApplicationFields()]
    lists = [layer.applications for layer in told if layer.applications is not None]
    return tuple(host_application(spec, kubepods) for spec in lists[-1]) if lists else defaults


def annotated_strategy(node: Node) -> ColocationFields | None:
    """The Node's own overlay. Raises ConfigurationFault naming Node, annotation and field."""
    text = node.annotations.get(ANNOTATION_STRATEGY, "")
    where = f"Node {node.name}: annotation {ANNOTATION_STRATEGY}"
    return checked(parsed(text, where), ColocationFields, where) if text else None


def ratio_labels(node: Node) -> ColocationFields:
    """The Node's ratios, cut to whole percents as Koordinator cuts them (0.29 is 28: int64 of a float product).

    Raises ConfigurationFault naming Node and label; Koordinator ignores a bad one.
    """
    percents = {}
    for label, name in _RATIO_LABELS.items():
        if label in node.labels:
            where, text = f"Node {node.name}: label {label}", node.labels[label]
            if not _RATIO.fullmatch(text):
                raise ConfigurationFault(where, f"is {text!r}", "write a fraction such as 0.65")
            percents[name] = int(float(text) * 100)
            checked({name: percents[name]}, ColocationFields, f"{where}, in percent as ")
    return msgspec.convert(percents, ColocationFields)
