"""NodeMetric: a node's measured use, the content of Koordinator's object, in base units."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.qos import PriorityBand, QoSClass
from model.report import Usage


class PodMetric(msgspec.Struct, frozen=True):
    """One pod's usage; `band` and `qos` are NONE where the document leaves them empty.

    `missing` names the resources that were not measured; their usage stands at 0.
    """

    namespace: str
    name: str
    usage: Usage
    band: PriorityBand = PriorityBand.NONE
    qos: QoSClass = QoSClass.NONE
    missing: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class HostApplicationMetric(msgspec.Struct, frozen=True):
    """Usage of a program of the host that is measured apart; 0 for what was not measured."""

    name: str
    usage: Usage
    band: PriorityBand = PriorityBand.NONE
    qos: QoSClass = QoSClass.NONE


class AggregatedUsage(msgspec.Struct, frozen=True):
    """Statistics (avg, p50, p90, p95, p99) over the last `duration_seconds`."""

    duration_seconds: float
    statistics: Mapping[str, Usage]


class NumaUsage(msgspec.Struct, frozen=True):
    """One NUMA node's use, and what of it no pod accounts for."""

    numa_id: int
    node: Usage
    system: Usage


class NodeMetric(msgspec.Struct, frozen=True):
    """`updated_seconds` is Unix time, None where the document never was written.

    `system` is the node's use outside all listed pods and measured host applications. A usage that lacks CPU or memory
    is None, but for those of pods and host applications.
    """

    updated_seconds: float | None = None
    node: Usage | None = None
    system: Usage | None = None
    pods: tuple[PodMetric, ...] = ()
    host_applications: tuple[HostApplicationMetric, ...] = ()
    prod_reclaimable: Usage | None = None
    prod_peak: Usage | None = None
    node_aggregates: tuple[AggregatedUsage, ...] = ()
    system_aggregates: tuple[AggregatedUsage, ...] = ()
    numa: tuple[NumaUsage, ...] = ()
