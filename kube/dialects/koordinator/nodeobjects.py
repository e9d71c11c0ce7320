"""Specs of Koordinator's per-node objects, NodeSLO and NodeMetric, from `slo-controller-config`.

Only what documents say is passed on. Where they are silent so are the objects, and the agent's own settings hold.
Source: Koordinator pkg/slo-controller/{nodeslo,nodemetric}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import checked, parsed, part, value_of
from kube.dialects.documents.duration import go_duration
from kube.dialects.documents.selector import LabelSelector
from kube.dialects.koordinator.configkey import SECTION_OF, ConfigKey
from kube.dialects.koordinator.sloconfig import (
    ColocationFields,
    Layers,
    NodeEntry,
    colocation_layers,
    colocation_overlaid,
)
from kube.objects import ConfigMap
from model.fault import ConfigurationFault
from model.strategy import ColocationStrategy

_ENTRY_WORDS = ("name", "nodeSelector")

Values = Layers[dict[str, Any]]


class _Selected(msgspec.Struct, frozen=True, rename="camel"):
    node_selector: LabelSelector | None = None


class NodeDocuments(msgspec.Struct, frozen=True):
    """The ConfigMap, read: key → values; without a key nothing is said."""

    sections: Mapping[ConfigKey, Values] = {}
    colocation: Layers[ColocationFields] | None = None


def read(source: ConfigMap | None, kept: NodeDocuments | None = None) -> tuple[NodeDocuments, list[ConfigurationFault]]:
    """Every key by itself: one that is wrong keeps its `kept` content, as in Koordinator, and is told as a fault."""
    kept = kept or NodeDocuments()
    sections, faults = dict[ConfigKey, Values](), list[ConfigurationFault]()
    for key in (*SECTION_OF, ConfigKey.HOST_APPLICATIONS):
        try:
            found = _section(source, key)
        except ConfigurationFault as fault:
            faults.append(fault)
            found = kept.sections.get(key)
        if found is not None:
            sections[key] = found
    try:
        colocation = colocation_layers(source)
    except ConfigurationFault as fault:
        faults.append(fault)
        colocation = kept.colocation
    return NodeDocuments(sections, colocation), faults


def node_slo_spec(documents: NodeDocuments, labels: Mapping[str, str]) -> dict[str, Any]:
    """Per section the cluster's values, with those of the first entry that matches the node's labels merged in."""
    spec: dict[str, Any] = {}
    for key, section in documents.sections.items():
        merged: dict[str, Any] = {}
        for layer in section.of(labels):
            merged = _merged(merged, layer)
        if key in SECTION_OF:
            spec[SECTION_OF[key].value] = merged
        else:
            spec["hostApplications"] = value_of(merged, "applications") or []
    return spec


def node_metric_spec(
    documents: NodeDocuments, labels: Mapping[str, str], annotated: ColocationFields | None
) -> dict[str, Any]:
    """`metricCollectPolicy`, where `colocation-config` or the Node's own annotation says anything."""
    layers = (*(documents.colocation.of(labels) if documents.colocation else ()), *([annotated] if annotated else ()))
    if not layers:
        return {}
    strategy = ColocationStrategy()
    for layer in layers:
        strategy = colocation_overlaid(strategy, layer)
    windows = [go_duration(seconds) for seconds in strategy.aggregate_durations_seconds]
    policy = {
        "aggregateDurationSeconds": int(strategy.aggregate_seconds),
        "reportIntervalSeconds": int(strategy.report_seconds),
        "nodeAggregatePolicy": {"durations": windows},
        "nodeMemoryCollectPolicy": strategy.memory_collect_policy.value,
    }
    return {"metricCollectPolicy": policy}


def _section(source: ConfigMap | None, key: ConfigKey) -> Values | None:
    text = ((source.data if source else None) or {}).get(key, "")
    if source is None or not text.strip():
        return None
    where = f"ConfigMap {source.metadata.namespace}/{source.metadata.name}: {key}"
    document = parsed(text, where)
    nodes = key.entries
    cluster = _object(document, key.cluster, where) if key.cluster else _without(document, nodes)
    entries = checked(_present(document, nodes, []), list[Any], f"{where}.{nodes}")
    return Layers(cluster, tuple(_entry(raw, f"{where}.{nodes}[{number}]") for number, raw in enumerate(entries)))


def _object(document: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    return checked(_present(document, name, {}), dict[str, Any], f"{where}.{name}")


def _present(document: dict[str, Any], name: str, otherwise: object) -> object:
    value = value_of(document, name)
    return otherwise if value is None else value


def _entry(raw: object, where: str) -> NodeEntry[dict[str, Any]]:
    selector = part(raw, _Selected, where).node_selector
    fields = _without(checked(raw, dict[str, Any], where), *_ENTRY_WORDS)
    return NodeEntry(selector.in_model() if selector else None, fields)


def _without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    left_out = {name.casefold() for name in names}
    return {key: value for key, value in document.items() if key.casefold() not in left_out}


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """As Go's encoding/json reads one document over another: objects merge, all else replaces; null is silent."""
    result = dict(under)
    for key, value in over.items():
        if value is None:
            continue
        before = result.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        result[key] = _merged(before, value) if both and isinstance(before, dict) else value
    return result
