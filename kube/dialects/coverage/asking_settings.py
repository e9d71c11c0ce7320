"""Fields of `slo-controller-config` and NodeSLOs that are not acted on, or in part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kube.dialects.coverage.asking import asks, gathered, places
from kube.dialects.coverage.rows import Asked, CoverageRow, Surface
from kube.dialects.coverage.settings import ROWS
from kube.dialects.documents.document import parsed, part, value_of
from kube.dialects.documents.selector import LabelSelector
from kube.dialects.koordinator.configkey import NODE_CONFIGS, NODE_STRATEGIES, SECTION_OF, ConfigKey
from kube.objects import ConfigMap, NodeSLO
from model.fault import ConfigurationFault

_CLUSTER, _ENTRIES = ConfigKey.THRESHOLD.cluster, (NODE_STRATEGIES, NODE_CONFIGS)
NODE_SLO_FIELDS = {key.value: section.value for key, section in SECTION_OF.items()} | {"extensions": "extensions"}
"""A key of the ConfigMap, and the field of a NodeSLO's spec that it fills."""
_WARNING = tuple(row for row in ROWS if row.surface is Surface.SETTINGS and row.warns)


class _Selected(msgspec.Struct, frozen=True, rename="camel"):
    node_selector: LabelSelector | None = None


def in_config(source: ConfigMap | None, labels: Mapping[str, str] | None = None) -> tuple[Asked, ...]:
    """Of every node, or of one with these labels."""
    data = (source.data if source else None) or {}
    return gathered(_in_config(data, labels))


def in_node_slo(source: NodeSLO | None) -> tuple[Asked, ...]:
    spec = source.spec if source and isinstance(source.spec, dict) else {}
    return gathered(_in_node_slo(spec))


def _in_config(data: Mapping[str, str], labels: Mapping[str, str] | None) -> Iterator[tuple[CoverageRow, str]]:
    for key, text in sorted(data.items()):
        for place, layer in _layers(key, text, labels):
            yield from _asked(key, layer, place)


def _in_node_slo(spec: dict[str, Any]) -> Iterator[tuple[CoverageRow, str]]:
    for key, field in NODE_SLO_FIELDS.items():
        yield from _asked(key, spec.get(field), f"spec.{field}")
    for row, place in _asked(ConfigKey.HOST_APPLICATIONS, {"applications": spec.get("hostApplications")}, "spec"):
        yield row, place.replace("spec.applications", "spec.hostApplications", 1)


def _asked(key: str, layer: object, place: str) -> Iterator[tuple[CoverageRow, str]]:
    for row in _WARNING:
        first, *rest = row.field.split(".")
        if first == key:
            yield from ((row, where) for where, value in places(layer, rest, place) if asks(row, value))


def _layers(key: str, text: str, labels: Mapping[str, str] | None) -> Iterator[tuple[str, object]]:
    """The cluster's values, which stand at the top of some keys, and those of each entry that may hold."""
    try:
        document = parsed(text, key)
    except ConfigurationFault:
        return
    cluster = value_of(document, _CLUSTER)
    yield (key, document) if cluster is None else (f"{key}.{_CLUSTER}", cluster)
    for name in _ENTRIES:
        entries = value_of(document, name)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if labels is None or _selects(entry, labels):
                yield f"{key}.{name}[{index}]", entry


def _selects(entry: object, labels: Mapping[str, str]) -> bool:
    try:
        selector = part(entry, _Selected, "").node_selector
        return selector is not None and selector.in_model().matches(labels)
    except ConfigurationFault:
        return False
