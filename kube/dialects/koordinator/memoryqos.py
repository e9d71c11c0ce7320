"""Memory QoS: `memoryQOS` of each class in settings, and the annotation of a pod.

Source: Koordinator apis/slo/v1alpha1/{nodeslo_types,pod}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec
from msgspec import field
from msgspec.structs import asdict, replace

from kube.dialects.documents.document import annotated, checked
from kube.dialects.koordinator.configkey import ConfigKey, Section
from kube.dialects.koordinator.sloconfig import Layers, layers
from kube.dialects.koordinator.slosections import MemoryQos as MemoryFields
from kube.objects import ConfigMap, NodeSLO
from model.fault import ConfigurationFault
from model.qos import RECOMMENDED, MemoryQos, MemoryQosPolicy, MemoryQosStrategy, PodMemoryQos

ANNOTATION = "koordinator.sh/memoryQOS"
_CLASSES = {"lsr": "lsr_class", "ls": "ls_class", "be": "be_class", "system": "system_class"}
"""A class of the strategy, and its part of a document."""


class PolicyText(StrEnum):
    """model.qos.MemoryQosPolicy as annotations write it: an empty text is the default."""

    NONE = MemoryQosPolicy.NONE.value
    DEFAULT = MemoryQosPolicy.DEFAULT.value
    AUTO = MemoryQosPolicy.AUTO.value
    UNSET = ""


class _Annotated(MemoryFields, frozen=True, rename="camel"):
    policy: PolicyText = PolicyText.UNSET


class ClassMemory(msgspec.Struct, frozen=True):
    """Of one class the part that memory QoS reads."""

    memory: MemoryFields | None = field(name="memoryQOS", default=None)


class MemoryClasses(msgspec.Struct, frozen=True, rename="camel"):
    """Of `resource-qos-config` and resourceQOSStrategy the part that memory QoS reads; None where it is silent."""

    lsr_class: ClassMemory | None = None
    ls_class: ClassMemory | None = None
    be_class: ClassMemory | None = None
    system_class: ClassMemory | None = None


def memory_layers(source: ConfigMap | None) -> Layers[MemoryClasses] | None:
    """Of `resource-qos-config`; None where there is none. Raises ConfigurationFault, as the next does."""
    return layers(source, ConfigKey.QOS, MemoryClasses)


def slo_memory(source: NodeSLO | None) -> MemoryClasses:
    """Of a NodeSLO's resourceQOSStrategy; silent without one."""
    spec = source.spec if source and isinstance(source.spec, dict) else {}
    where = f"NodeSLO {source.metadata.name if source else ''}: spec.{Section.QOS}"
    return checked(spec.get(Section.QOS) or {}, MemoryClasses, where)


def memory_strategy(told: Iterable[MemoryClasses]) -> MemoryQosStrategy:
    """What documents say of each class, the later before the earlier; a class is off unless one of them says on."""
    documents, strategy = tuple(told), MemoryQosStrategy()
    for name, part in _CLASSES.items():
        merged: dict[str, object] = {}
        for document in documents:
            found = getattr(document, part)
            written = asdict(found.memory) if found and found.memory else {}
            merged |= {key: value for key, value in written.items() if value is not None}
        if merged.get("enable"):
            fields = _in_model(replace(MemoryFields(), **merged))
            strategy = replace(strategy, **{name: fields.over(getattr(RECOMMENDED, name))})
    return strategy


def pod_memory(annotations: Mapping[str, str]) -> PodMemoryQos | None:
    """A pod's own words; None without any, and where they cannot be read: its class holds, as in Koordinator."""
    try:
        told = annotated(annotations, ANNOTATION, _Annotated, "Pod")
    except ConfigurationFault:
        return None
    if told is None:
        return None
    return PodMemoryQos(MemoryQosPolicy(told.policy or PolicyText.DEFAULT), _in_model(told))


def reads_pod_memory(text: str) -> bool:
    """Whether an annotation is a JSON object of known values."""
    return pod_memory({ANNOTATION: text}) is not None


def _in_model(told: MemoryFields) -> MemoryQos:
    return MemoryQos(
        min_pct=told.min_limit_percent,
        low_pct=told.low_limit_percent,
        throttling_pct=told.throttling_percent,
        wmark_ratio=told.wmark_ratio,
        wmark_scale_permill=told.wmark_scale_permill,
        wmark_min_adj=told.wmark_min_adj,
        priority_enable=told.priority_enable,
        priority=told.priority,
        oom_kill_group=told.oom_kill_group,
    )
