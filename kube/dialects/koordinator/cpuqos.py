"""CPU QoS: `cpuQOS` of each class in settings with the policy that all of them follow, and the annotation of a pod.

Source: Koordinator apis/slo/v1alpha1/{nodeslo_types,pod}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, field
from msgspec.structs import asdict, replace

from kube.dialects.documents.document import annotated, checked
from kube.dialects.koordinator.configkey import ConfigKey, Section
from kube.dialects.koordinator.sloconfig import Layers, layers
from kube.dialects.koordinator.slosections import CpuPolicy, QosPolicies
from kube.dialects.koordinator.slosections import CpuQos as CpuFields
from kube.objects import ConfigMap, NodeSLO
from model.fault import ConfigurationFault
from model.qos import USUAL_CPU, CpuQos, CpuQosStrategy

ANNOTATION = "koordinator.sh/cpuQOS"
_CLASSES = {"lsr": "lsr_class", "ls": "ls_class", "be": "be_class", "system": "system_class"}
"""A class of the strategy, and its part of a document."""


class _Annotated(msgspec.Struct, frozen=True):
    identity: Annotated[int, Meta(ge=-1, le=2)] | None = field(name="groupIdentity", default=None)


class ClassCpu(msgspec.Struct, frozen=True):
    """Of one class the part that CPU QoS reads."""

    cpu: CpuFields | None = field(name="cpuQOS", default=None)


class CpuClasses(msgspec.Struct, frozen=True, rename="camel"):
    """Of `resource-qos-config` and resourceQOSStrategy the part that CPU QoS reads; None where it is silent."""

    policies: QosPolicies | None = None
    lsr_class: ClassCpu | None = None
    ls_class: ClassCpu | None = None
    be_class: ClassCpu | None = None
    system_class: ClassCpu | None = None


def cpu_layers(source: ConfigMap | None) -> Layers[CpuClasses] | None:
    """Of `resource-qos-config`; None where there is none. Raises ConfigurationFault, as the next does."""
    return layers(source, ConfigKey.QOS, CpuClasses)


def slo_cpu(source: NodeSLO | None) -> CpuClasses:
    """Of a NodeSLO's resourceQOSStrategy; silent without one."""
    spec = source.spec if source and isinstance(source.spec, dict) else {}
    where = f"NodeSLO {source.metadata.name if source else ''}: spec.{Section.QOS}"
    return checked(spec.get(Section.QOS) or {}, CpuClasses, where)


def cpu_strategy(told: Iterable[CpuClasses]) -> CpuQosStrategy:
    """What documents say of each class, the later before the earlier; a class is off unless one of them says on.

    Under policy coreSched no class has a group identity: the two exclude each other.
    """
    documents, strategy = tuple(told), CpuQosStrategy()
    policies = [each.policies.cpu for each in documents if each.policies and each.policies.cpu is not None]
    by_identity = not policies or policies[-1] is not CpuPolicy.CORE_SCHED
    for name, part in _CLASSES.items():
        fields = _merged(found.cpu for document in documents if (found := getattr(document, part)) and found.cpu)
        if fields.enable:
            strategy = replace(strategy, **{name: _in_model(fields, getattr(USUAL_CPU, name), by_identity)})
    return strategy


def pod_identity(annotations: Mapping[str, str]) -> int | None:
    """A pod's own group identity; None without one, and where it cannot be read: its class's holds."""
    try:
        told = annotated(annotations, ANNOTATION, _Annotated, "Pod")
    except ConfigurationFault:
        return None
    return None if told is None else told.identity


def reads_pod_identity(text: str) -> bool:
    """Whether an annotation is a JSON object with an identity from -1 to 2, or none."""
    try:
        return annotated({ANNOTATION: text}, ANNOTATION, _Annotated, "Pod") is not None
    except ConfigurationFault:
        return False


def _merged(told: Iterable[CpuFields]) -> CpuFields:
    merged: dict[str, object] = {}
    for fields in told:
        merged |= {key: value for key, value in asdict(fields).items() if value is not None}
    return replace(CpuFields(), **merged)


def _in_model(fields: CpuFields, usual: CpuQos, by_identity: bool) -> CpuQos:
    told = usual.identity if fields.group_identity is None else fields.group_identity
    return CpuQos(told if by_identity else 0, bool(fields.sched_idle))
