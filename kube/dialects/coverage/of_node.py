"""Fields of one node's settings that are not acted on, or in part: for its condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kube.dialects.coverage.asking import RowsByKey, gathered, keyed
from kube.dialects.coverage.asking_settings import in_config, in_node_slo
from kube.dialects.coverage.objects import ROWS
from kube.dialects.coverage.rows import Asked, Surface
from kube.dialects.coverage.rules import flaws, together
from kube.dialects.koordinator.nodesettings import Documents, Sources
from kube.dialects.koordinator.nodeslo import EvictionFields
from model.node import Node
from model.nodesettings import NodeSettings

_WORDS = RowsByKey(row for row in ROWS if row.surface is Surface.NODE)


def in_node(labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[Asked, ...]:
    """Of the Node's own words."""
    found = (*keyed(_WORDS, labels, "metadata.labels"), *keyed(_WORDS, annotations, "metadata.annotations"))
    return gathered(found)


def unmet(sources: Sources, documents: Documents, defaults: NodeSettings, *, evicts: bool) -> tuple[str, ...]:
    """Fields of the ConfigMap as it holds on the node, its NodeSLO, the Node's own words, and eviction rules that are
    off since something is missing (where the node `evicts` at all)."""
    return tuple(dict.fromkeys([*_fields(sources), *(_rules(documents, defaults) if evicts else ())]))


def _fields(sources: Sources) -> Iterator[str]:
    node = sources.node or Node("")
    for found in (
        in_config(sources.config_map, node.labels),
        in_node_slo(sources.slo),
        in_node(node.labels, node.annotations),
    ):
        yield from (asked.row.name for asked in found)


def _rules(documents: Documents, defaults: NodeSettings) -> Iterator[str]:
    layers = documents.eviction.of(documents.labels) if documents.eviction else ()
    own = msgspec.structs.asdict(defaults.eviction)
    known = EvictionFields.__struct_fields__
    numbers: dict[str, Any] = {name: own[name] for name in known if name in own and isinstance(own[name], int)}
    merged = together((EvictionFields(**numbers), *layers, documents.slo_eviction))
    yield from map(str, flaws(merged))
