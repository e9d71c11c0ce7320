"""Koordinator's ConfigMap `slo-controller-config`: cluster values, and per group of nodes what differs from them.

Source: Koordinator apis/configuration/slo_controller_config.go, pkg/util/sloconfig/colocation_config.go,
pkg/slo-controller/{config,nodeslo,noderesource/plugins/cpunormalization}. How facts are reported is no reason to stop
lending: a field that only says that is brought into range instead of refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta, field

from kube.dialects.documents.document import GoDuration, checked, parsed, part, value_of
from kube.dialects.documents.selector import LabelSelector
from kube.dialects.koordinator.configkey import ConfigKey
from kube.dialects.koordinator.nodeslo import EvictionFields, HostApplicationFields, SuppressFields, SwitchFields
from kube.objects import ConfigMap
from model.selector import Selector
from model.strategy import (
    CalculatePolicy,
    ColocationStrategy,
    CpuLimitPolicy,
    EvictionStrategy,
    MemoryCollectPolicy,
    MidMode,
    NormalizationStrategy,
    RatioModel,
    SuppressPolicy,
    SuppressStrategy,
)

T = TypeVar("T")

_Threshold = Annotated[int, Meta(ge=0, le=1000)]
_Share = Annotated[int, Meta(ge=0, le=100)]
_Cap = Annotated[int, Meta(ge=0, le=1_000_000)]
_Ratio = Annotated[float, Meta(ge=1, le=5)]

_LONGEST_SECONDS = 3600.0
_SHORTEST_SECONDS = {"aggregate_seconds": 60.0, "report_seconds": 30.0, "update_interval_seconds": 10.0}
"""Koordlet's own for the first two (pkg/koordlet/statesinformer/impl/states_nodemetric.go)."""
_MOST_SATISFACTION_PCT = {"cpu_satisfaction_lower_pct": 60, "cpu_satisfaction_upper_pct": 99}
"""Beyond it and at 0 the rule is off (Koordinator pkg/koordlet/qosmanager/plugins/cpuevict)."""
_SHORTEST_WINDOW_SECONDS = 10.0
_MOST_WINDOWS = 6


class AggregatePolicy(msgspec.Struct, frozen=True):
    """Windows of the percentiles."""

    durations: list[GoDuration] | None = None


class CollectPolicy(msgspec.Struct, frozen=True):
    """Of NodeMetric's spec.metricCollectPolicy what lending depends on."""

    aggregate_seconds: float | None = field(name="aggregateDurationSeconds", default=None)
    memory_collect_policy: MemoryCollectPolicy | None = field(name="nodeMemoryCollectPolicy", default=None)


class ReportPolicy(msgspec.Struct, frozen=True):
    """Of NodeMetric's spec.metricCollectPolicy what only reports depend on."""

    report_seconds: float | None = field(name="reportIntervalSeconds", default=None)
    aggregate_policy: AggregatePolicy | None = field(name="nodeAggregatePolicy", default=None)


class ColocationFields(msgspec.Struct, frozen=True):
    """Fields of model.strategy.ColocationStrategy that a document sets; None where it is silent."""

    enable: bool | None = None
    aggregate_seconds: float | None = field(name="metricAggregateDurationSeconds", default=None)
    report_seconds: float | None = field(name="metricReportIntervalSeconds", default=None)
    aggregate_policy: AggregatePolicy | None = field(name="metricAggregatePolicy", default=None)
    memory_collect_policy: MemoryCollectPolicy | None = field(name="metricMemoryCollectPolicy", default=None)
    cpu_reclaim_threshold_pct: _Threshold | None = field(name="cpuReclaimThresholdPercent", default=None)
    memory_reclaim_threshold_pct: _Threshold | None = field(name="memoryReclaimThresholdPercent", default=None)
    cpu_policy: CalculatePolicy | None = field(name="cpuCalculatePolicy", default=None)
    memory_policy: CalculatePolicy | None = field(name="memoryCalculatePolicy", default=None)
    batch_cpu_threshold_pct: _Cap | None = field(name="batchCPUThresholdPercent", default=None)
    batch_memory_threshold_pct: _Cap | None = field(name="batchMemoryThresholdPercent", default=None)
    mid_mode: MidMode | None = field(name="midReclaimMode", default=None)
    mid_cpu_threshold_pct: _Share | None = field(name="midCPUThresholdPercent", default=None)
    mid_memory_threshold_pct: _Share | None = field(name="midMemoryThresholdPercent", default=None)
    mid_unallocated_pct: _Share | None = field(name="midUnallocatedPercent", default=None)
    mid_static_cpu_reserved_pct: _Share | None = field(name="midStaticCPUReservedPercent", default=None)
    mid_static_memory_reserved_pct: _Share | None = field(name="midStaticMemoryReservedPercent", default=None)
    degrade_minutes: Annotated[float, Meta(ge=1, le=1440)] | None = field(name="degradeTimeMinutes", default=None)
    update_interval_seconds: float | None = field(name="updateTimeThresholdSeconds", default=None)
    resource_diff_ratio: Annotated[float, Meta(gt=0, le=1)] | None = field(name="resourceDiffThreshold", default=None)


class ModelRatios(msgspec.Struct, frozen=True, rename="camel"):
    """One CPU model's ratios."""

    base_ratio: _Ratio | None = None
    hyper_thread_enabled_ratio: _Ratio | None = None
    turbo_enabled_ratio: _Ratio | None = None
    hyper_thread_turbo_enabled_ratio: _Ratio | None = None


class NormalizationFields(msgspec.Struct, frozen=True, rename="camel"):
    """Fields of model.strategy.NormalizationStrategy that a document sets; None where it is silent."""

    enable: bool | None = None
    default_ratio: _Ratio | None = None
    ratio_model: dict[str, ModelRatios] | None = None


class NodeEntry(msgspec.Struct, Generic[T], frozen=True):
    """What differs on the nodes that `selector` matches; without a selector on none."""

    selector: Selector | None
    fields: T


class Layers(msgspec.Struct, Generic[T], frozen=True):
    """One key of the ConfigMap."""

    cluster: T
    nodes: tuple[NodeEntry[T], ...] = ()

    def of(self, labels: Mapping[str, str]) -> tuple[T, ...]:
        """The cluster's values, then those of the first entry that matches the node."""
        for entry in self.nodes:
            if entry.selector is not None and entry.selector.matches(labels):
                return (self.cluster, entry.fields)
        return (self.cluster,)


class _Selected(msgspec.Struct, frozen=True, rename="camel"):
    name: str | None = None
    node_selector: LabelSelector | None = None


def colocation_layers(source: ConfigMap | None) -> Layers[ColocationFields] | None:
    """`colocation-config`; None where there is none. Raises ConfigurationFault, as all below do."""
    return layers(source, ConfigKey.COLOCATION, ColocationFields)


def normalization_layers(source: ConfigMap | None) -> Layers[NormalizationFields] | None:
    """`cpu-normalization-config`."""
    return layers(source, ConfigKey.NORMALIZATION, NormalizationFields)


def cluster_switch(source: ConfigMap | None) -> SwitchFields | None:
    """Of `resource-threshold-config` the cluster's switch alone: no fault elsewhere may hide that it is off."""
    found = _found(source, ConfigKey.THRESHOLD)
    return _cluster(found, SwitchFields, ConfigKey.THRESHOLD.cluster) if found else None


def entry_switches(source: ConfigMap | None) -> Layers[SwitchFields] | None:
    """Of `resource-threshold-config` the node entries' switches, without the cluster's."""
    found = _found(source, ConfigKey.THRESHOLD)
    return Layers(SwitchFields(), _entries(found, SwitchFields, ConfigKey.THRESHOLD.entries)) if found else None


def suppress_layers(source: ConfigMap | None) -> Layers[SuppressFields] | None:
    """Of `resource-threshold-config` what is about suppression."""
    return layers(source, ConfigKey.THRESHOLD, SuppressFields)


def eviction_layers(source: ConfigMap | None) -> Layers[EvictionFields] | None:
    """Of `resource-threshold-config` what is about evictions."""
    return layers(source, ConfigKey.THRESHOLD, EvictionFields)


def host_application_layers(source: ConfigMap | None) -> Layers[HostApplicationFields] | None:
    """`host-application-config`; an entry's list replaces the cluster's."""
    return layers(source, ConfigKey.HOST_APPLICATIONS, HostApplicationFields)


def layers(source: ConfigMap | None, key: ConfigKey, kind: type[T]) -> Layers[T] | None:
    """One key, its fields as `kind`. Raises ConfigurationFault."""
    found = _found(source, key)
    return Layers(_cluster(found, kind, key.cluster), _entries(found, kind, key.entries)) if found else None


class _Found(msgspec.Struct, frozen=True):
    """The JSON object under one key, and what a fault calls it."""

    document: dict[str, Any]
    where: str

    def present(self, name: str, otherwise: object) -> object:
        value = value_of(self.document, name)
        return otherwise if value is None else value


def _found(source: ConfigMap | None, key: ConfigKey) -> _Found | None:
    text = ((source.data if source else None) or {}).get(key, "")
    if source is None or not text.strip():
        return None
    where = f"ConfigMap {source.metadata.namespace}/{source.metadata.name}: {key}"
    return _Found(parsed(text, where), where)


def _cluster(found: _Found, kind: type[T], name: str) -> T:
    if not name:
        return part(found.document, kind, found.where)
    return part(found.present(name, {}), kind, f"{found.where}.{name}")


def _entries(found: _Found, kind: type[T], name: str) -> tuple[NodeEntry[T], ...]:
    where = f"{found.where}.{name}"
    entries = checked(found.present(name, []), list[Any], where)
    return tuple(_entry(entry, kind, f"{where}[{index}]") for index, entry in enumerate(entries))


def _entry(raw: object, kind: type[T], where: str) -> NodeEntry[T]:
    selected = part(raw, _Selected, where).node_selector
    return NodeEntry(selected.in_model() if selected else None, part(raw, kind, where))


def colocation_overlaid(
    strategy: ColocationStrategy, layer: ColocationFields | CollectPolicy | ReportPolicy
) -> ColocationStrategy:
    """What the layer sets replaces what was; the live window never outgrows the aggregate one."""
    changes = _set(layer)
    changes |= {name: _within(low, changes[name]) for name, low in _SHORTEST_SECONDS.items() if name in changes}
    if windows := _windows(changes.pop("aggregate_policy", None)):
        changes["aggregate_durations_seconds"] = windows
    if "aggregate_seconds" in changes:
        changes["live_window_seconds"] = min(strategy.live_window_seconds, changes["aggregate_seconds"])
    if "degrade_minutes" in changes:
        changes["degrade_seconds"] = 60.0 * changes.pop("degrade_minutes")
    return msgspec.structs.replace(strategy, **changes)


def _within(shortest: float, seconds: float) -> float:
    return max(shortest, min(seconds, _LONGEST_SECONDS))


def _windows(policy: AggregatePolicy | None) -> tuple[float, ...]:
    """Each once, in the order given; those beyond the most that are kept are left out."""
    seconds = (policy.durations if policy else None) or ()
    return tuple(dict.fromkeys(_within(_SHORTEST_WINDOW_SECONDS, float(each)) for each in seconds))[:_MOST_WINDOWS]


def suppress_overlaid(strategy: SuppressStrategy, layer: SuppressFields) -> SuppressStrategy:
    """What the layer sets replaces what was."""
    changes = _set(layer)
    if "policy" in changes:
        changes["policy"] = SuppressPolicy(changes["policy"].value or strategy.policy)
    return msgspec.structs.replace(strategy, **changes)


def eviction_overlaid(strategy: EvictionStrategy, layer: EvictionFields) -> EvictionStrategy:
    """What the layer sets replaces what was; a satisfaction out of its range switches its rule off, as in koordlet."""
    changes = _set(layer)
    if "cpu_limit_policy" in changes:
        changes["cpu_limit_policy"] = CpuLimitPolicy(changes["cpu_limit_policy"].value or strategy.cpu_limit_policy)
    if "cpu_window_seconds" in changes:
        changes["cpu_window_seconds"] = min(float(changes["cpu_window_seconds"]), _LONGEST_SECONDS)
    changes |= {name: None for name, most in _MOST_SATISFACTION_PCT.items() if not 0 < changes.get(name, 1) <= most}
    return msgspec.structs.replace(strategy, **changes)


def normalization_overlaid(strategy: NormalizationStrategy, layer: NormalizationFields) -> NormalizationStrategy:
    """What the layer sets replaces what was; a CPU model is replaced as a whole."""
    changes = _set(layer)
    models: dict[str, ModelRatios] = changes.pop("ratio_model", {})
    added = {model: RatioModel(*msgspec.structs.astuple(ratios)) for model, ratios in models.items()}
    return msgspec.structs.replace(strategy, **changes, models={**strategy.models, **added})


def _set(layer: msgspec.Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(layer).items() if value is not None}
