"""The settings of one node from every document that speaks of it, in Koordinator's order.

Reading and merging are apart: each document, annotation and label is read by itself, so that a broken one keeps its
last good content while all others, a switch to off among them, take effect. Merging cannot fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from kube import objects
from kube.dialects.documents.document import annotated, checked
from kube.dialects.koordinator import labels as koordinator
from kube.dialects.koordinator.cpuburst import BurstFields, burst_layers, burst_overlaid, slo_burst
from kube.dialects.koordinator.cpuqos import CpuClasses, cpu_layers, cpu_strategy, slo_cpu
from kube.dialects.koordinator.memoryqos import MemoryClasses, memory_layers, memory_strategy, slo_memory
from kube.dialects.koordinator.nodemetric import collect_policy, report_policy
from kube.dialects.koordinator.nodeslo import (
    EvictionFields,
    HostApplicationFields,
    OtherSections,
    SuppressFields,
    SwitchFields,
    host_application,
    slo_host_applications,
    slo_others,
    slo_threshold,
)
from kube.dialects.koordinator.reservation import reservation
from kube.dialects.koordinator.sloconfig import (
    CollectPolicy,
    ColocationFields,
    Layers,
    NormalizationFields,
    ReportPolicy,
    cluster_switch,
    colocation_layers,
    colocation_overlaid,
    entry_switches,
    eviction_layers,
    eviction_overlaid,
    host_application_layers,
    normalization_layers,
    normalization_overlaid,
    suppress_layers,
    suppress_overlaid,
)
from kube.dialects.koordinator.systemqos import system_cpus
from model.fault import ConfigurationFault
from model.node import Node
from model.nodecolocation import NodeColocation
from model.nodesettings import NodeSettings
from model.qos import CpuQosStrategy, MemoryQosStrategy
from model.resources import ResourceVector
from model.strategy import (
    BurstStrategy,
    ColocationStrategy,
    EvictionStrategy,
    HostApplication,
    NormalizationStrategy,
    SuppressStrategy,
)

ANNOTATION_STRATEGY = "node.koordinator.sh/colocation-strategy"
_RATIO_LABELS = {
    "cpu_reclaim_ratio": ("node.koordinator.sh/cpu-reclaim-ratio", "cpuReclaimThresholdPercent"),
    "memory_reclaim_ratio": ("node.koordinator.sh/memory-reclaim-ratio", "memoryReclaimThresholdPercent"),
    "mid_static_cpu_ratio": ("node.koordinator.sh/mid-static-cpu-reserved-ratio", "midStaticCPUReservedPercent"),
    "mid_static_memory_ratio": (
        "node.koordinator.sh/mid-static-memory-reserved-ratio",
        "midStaticMemoryReservedPercent",
    ),
}
_RATIO = re.compile(r"\+?(?:[0-9]{1,9}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?")


class Sources(msgspec.Struct, frozen=True):
    """The objects as they are now; None where there is none."""

    node: Node | None = None
    config_map: objects.ConfigMap | None = None
    slo: objects.NodeSLO | None = None
    metric: objects.NodeMetric | None = None


class Documents(msgspec.Struct, frozen=True):
    """What was read of them. `unread` are those that were never readable since the first look.

    `config_map` is namespace/name of the ConfigMap that is or was there, empty where none was ever seen;
    `config_map_deleted` says that it was, `gone` says so in words.
    """

    config_map: str = ""
    config_map_deleted: bool = False
    colocation: Layers[ColocationFields] | None = None
    normalization: Layers[NormalizationFields] | None = None
    cluster_switch: SwitchFields | None = None
    entry_switches: Layers[SwitchFields] | None = None
    suppress: Layers[SuppressFields] | None = None
    eviction: Layers[EvictionFields] | None = None
    burst: Layers[BurstFields] | None = None
    host_applications: Layers[HostApplicationFields] | None = None
    memory_qos: Layers[MemoryClasses] | None = None
    cpu_qos: Layers[CpuClasses] | None = None
    slo_switch: SwitchFields = SwitchFields()
    slo_suppress: SuppressFields = SuppressFields()
    slo_eviction: EvictionFields = EvictionFields()
    slo_burst: BurstFields = BurstFields()
    slo_host_applications: HostApplicationFields = HostApplicationFields()
    slo_memory_qos: MemoryClasses = MemoryClasses()
    slo_cpu_qos: CpuClasses = CpuClasses()
    slo_others: OtherSections = OtherSections()
    collect: CollectPolicy | None = None
    report: ReportPolicy | None = None
    annotated: ColocationFields | None = None
    cpu_reclaim_ratio: ColocationFields | None = None
    memory_reclaim_ratio: ColocationFields | None = None
    mid_static_cpu_ratio: ColocationFields | None = None
    mid_static_memory_ratio: ColocationFields | None = None
    reserved: ResourceVector = ResourceVector()
    third_party: ResourceVector | None = None
    normalization_ratio: float | None = None
    raw_allocatable: ResourceVector | None = None
    reserved_cpus: tuple[int, ...] = ()
    system_cpus: tuple[int, ...] = ()
    labels: Mapping[str, str] = {}
    unread: frozenset[str] = frozenset()

    @property
    def gone(self) -> ConfigurationFault | None:
        """The ConfigMap that was deleted, None where none was."""
        told = "was deleted; nothing more is lent until it is back or the agent is restarted"
        return ConfigurationFault(f"ConfigMap {self.config_map}", told) if self.config_map_deleted else None

    @property
    def node(self) -> NodeColocation:
        """The Node's own words."""
        return NodeColocation(
            reserved=self.reserved,
            third_party=self.third_party,
            normalization_ratio=self.normalization_ratio,
            raw_allocatable=self.raw_allocatable,
            reserved_cpus=self.reserved_cpus,
            system_cpus=self.system_cpus,
        )

    @property
    def ratios(self) -> tuple[ColocationFields | None, ...]:
        """What the Node's labels set."""
        return tuple(getattr(self, name) for name in _RATIO_LABELS)


def annotated_strategy(node: Node) -> ColocationFields | None:
    """The Node's own overlay. Raises ConfigurationFault naming Node, annotation and field."""
    return annotated(node.annotations, ANNOTATION_STRATEGY, ColocationFields, f"Node {node.name}")


def ratio_label(name: str, node: Node) -> ColocationFields | None:
    """One of the Node's ratios, cut to whole percents as Koordinator cuts it (0.29 is 28: int64 of a float product).

    Raises ConfigurationFault naming Node and label; Koordinator ignores a bad one.
    """
    label, field = _RATIO_LABELS[name]
    if label not in node.labels:
        return None
    where, text = f"Node {node.name}: label {label}", node.labels[label]
    if not _RATIO.fullmatch(text):
        raise ConfigurationFault(where, f"is {text!r}", "write a fraction such as 0.65")
    return checked({field: int(float(text) * 100)}, ColocationFields, f"{where}, in percent as ")


def _of_node(reader: Callable[[Node], Any]) -> Callable[[Sources], Any]:
    """A reader of the Node; where there is none, it says what an empty one does."""
    return lambda sources: reader(sources.node or Node(""))


_READERS: Mapping[str, Callable[[Sources], Any]] = {
    "colocation": lambda sources: colocation_layers(sources.config_map),
    "normalization": lambda sources: normalization_layers(sources.config_map),
    "cluster_switch": lambda sources: cluster_switch(sources.config_map),
    "entry_switches": lambda sources: entry_switches(sources.config_map),
    "suppress": lambda sources: suppress_layers(sources.config_map),
    "eviction": lambda sources: eviction_layers(sources.config_map),
    "burst": lambda sources: burst_layers(sources.config_map),
    "host_applications": lambda sources: host_application_layers(sources.config_map),
    "memory_qos": lambda sources: memory_layers(sources.config_map),
    "cpu_qos": lambda sources: cpu_layers(sources.config_map),
    "slo_switch": lambda sources: slo_threshold(sources.slo, SwitchFields),
    "slo_suppress": lambda sources: slo_threshold(sources.slo, SuppressFields),
    "slo_eviction": lambda sources: slo_threshold(sources.slo, EvictionFields),
    "slo_burst": lambda sources: slo_burst(sources.slo),
    "slo_host_applications": lambda sources: slo_host_applications(sources.slo),
    "slo_memory_qos": lambda sources: slo_memory(sources.slo),
    "slo_cpu_qos": lambda sources: slo_cpu(sources.slo),
    "slo_others": lambda sources: slo_others(sources.slo),
    "collect": lambda sources: collect_policy(sources.metric) if sources.metric else None,
    "report": lambda sources: report_policy(sources.metric) if sources.metric else None,
    "annotated": _of_node(annotated_strategy),
    **{name: _of_node(partial(ratio_label, name)) for name in _RATIO_LABELS},
    "reserved": _of_node(lambda node: reservation(node).reserved),
    "reserved_cpus": _of_node(lambda node: reservation(node).cpus),
    "system_cpus": _of_node(system_cpus),
    "third_party": _of_node(koordinator.third_party),
    "normalization_ratio": _of_node(koordinator.normalization_ratio),
    "raw_allocatable": _of_node(koordinator.raw_allocatable),
}
_LIMIT_LENDING = frozenset(
    {"colocation", "collect", "annotated", *_RATIO_LABELS, "reserved", "third_party", "raw_allocatable"}
)
"""These may ask for less than the defaults lend; without the others the same or less is lent."""
_NOT_KEPT = frozenset({"normalization_ratio"})
"""It multiplies what is lent: unreadable, it multiplies nothing."""


def read(sources: Sources, kept: Documents | None = None) -> tuple[Documents, tuple[ConfigurationFault, ...]]:
    """Every document, and what is wrong with those of which the `kept` content stays.

    The first look is to be taken once all sources are known: what is broken then has no good content to keep.
    """
    found: dict[str, Any] = {}
    faults: dict[str, ConfigurationFault] = {}
    unread = set()
    for name, reader in _READERS.items():
        try:
            found[name] = reader(sources)
        except ConfigurationFault as fault:
            faults.setdefault(str(fault), fault)
            if kept is None or name in kept.unread:
                unread.add(name)
            elif name not in _NOT_KEPT:
                found[name] = getattr(kept, name)
    config_map = _name(sources.config_map) or (kept.config_map if kept else "")
    deleted = bool(config_map) and sources.config_map is None
    documents = Documents(
        **found,
        config_map=config_map,
        config_map_deleted=deleted,
        labels=sources.node.labels if sources.node else {},
        unread=frozenset(unread),
    )
    return documents, tuple(faults.values())


def _name(config_map: objects.ConfigMap | None) -> str:
    return f"{config_map.metadata.namespace}/{config_map.metadata.name}" if config_map else ""


def node_settings(documents: Documents, defaults: NodeSettings, kubepods: str = "/kubepods") -> NodeSettings:
    """Later beats earlier: the defaults, the ConfigMap's cluster values, its first matching node entry, then for
    lending the Node's annotation, its labels and NodeMetric's spec, for the rest the NodeSLO.

    `kubepods` is the pods' root below the controllers' mounts. Nothing is lent while a document that may limit lending
    was never readable, or after the ConfigMap was deleted. A ConfigMap that is there holds in whole, as in Koordinator:
    lending and normalization are off unless it says on.
    """
    return NodeSettings(
        colocation=_colocation(documents, defaults.colocation),
        suppress=_suppress(documents, defaults.suppress),
        normalization=_normalization(documents, defaults.normalization),
        eviction=_eviction(documents, defaults.eviction),
        burst=_burst(documents, defaults.burst),
        host_applications=_host_applications(documents, defaults.host_applications, kubepods),
        memory_qos=_memory_qos(documents),
        cpu_qos=_cpu_qos(documents),
        uclamp=defaults.uclamp,
        oom_scores=defaults.oom_scores,
    )


def _colocation(documents: Documents, strategy: ColocationStrategy) -> ColocationStrategy:
    if documents.config_map:
        strategy = msgspec.structs.replace(strategy, enable=False)
    layers = documents.colocation.of(documents.labels) if documents.colocation else ()
    for layer in (*layers, documents.annotated, *documents.ratios, documents.collect, documents.report):
        strategy = colocation_overlaid(strategy, layer) if layer else strategy
    unknown = documents.config_map_deleted or documents.unread & _LIMIT_LENDING
    return msgspec.structs.replace(strategy, enable=False) if unknown else strategy


def _suppress(documents: Documents, strategy: SuppressStrategy) -> SuppressStrategy:
    layers = documents.suppress.of(documents.labels) if documents.suppress else ()
    for layer in (*layers, documents.slo_suppress):
        strategy = suppress_overlaid(strategy, layer)
    return msgspec.structs.replace(strategy, enable=_switched(documents, strategy.enable))


def _eviction(documents: Documents, defaults: EvictionStrategy) -> EvictionStrategy:
    """Switched off in the agent's own settings it is off, whatever documents say, as by koordlet's feature gates."""
    layers = documents.eviction.of(documents.labels) if documents.eviction else ()
    strategy = defaults
    for layer in (*layers, documents.slo_eviction):
        strategy = eviction_overlaid(strategy, layer)
    return msgspec.structs.replace(strategy, enable=defaults.enable and _switched(documents, True))


def _burst(documents: Documents, strategy: BurstStrategy) -> BurstStrategy:
    layers = documents.burst.of(documents.labels) if documents.burst else ()
    for layer in (*layers, documents.slo_burst):
        strategy = burst_overlaid(strategy, layer)
    return strategy


def _switched(documents: Documents, enable: bool) -> bool:
    """What the last document says that says anything."""
    entries = documents.entry_switches.of(documents.labels) if documents.entry_switches else ()
    for layer in (documents.cluster_switch, *entries, documents.slo_switch):
        enable = enable if layer is None or layer.enable is None else layer.enable
    return enable


def _normalization(documents: Documents, strategy: NormalizationStrategy) -> NormalizationStrategy:
    """Ratio 1 is said aloud where a document has no default, so that a ratio left in the Node's annotation ends."""
    if not documents.config_map:
        return strategy
    if documents.normalization is None:
        return NormalizationStrategy(default_ratio=1.0)
    strategy = msgspec.structs.replace(strategy, enable=False, default_ratio=strategy.default_ratio or 1.0)
    for layer in documents.normalization.of(documents.labels):
        strategy = normalization_overlaid(strategy, layer)
    return strategy


def _memory_qos(documents: Documents) -> MemoryQosStrategy:
    layers = documents.memory_qos.of(documents.labels) if documents.memory_qos else ()
    return memory_strategy((*layers, documents.slo_memory_qos))


def _cpu_qos(documents: Documents) -> CpuQosStrategy:
    layers = documents.cpu_qos.of(documents.labels) if documents.cpu_qos else ()
    return cpu_strategy((*layers, documents.slo_cpu_qos))


def _host_applications(
    documents: Documents, defaults: tuple[HostApplication, ...], kubepods: str
) -> tuple[HostApplication, ...]:
    layers = documents.host_applications.of(documents.labels) if documents.host_applications else ()
    told = (*layers, documents.slo_host_applications)
    lists = [layer.applications for layer in told if layer.applications is not None]
    return tuple(host_application(spec, kubepods) for spec in lists[-1]) if lists else defaults
