"""Koordinator's ClusterColocationProfile into the model's.

Source: Koordinator apis/config/v1alpha1/cluster_colocation_profile_types.go, apis/extension/constants.go.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import field

from kube.dialects.documents.document import check_depth, checked
from kube.dialects.documents.selector import LabelSelector
from kube.objects import ClusterColocationProfile, Int32
from model.fault import ConfigurationFault
from model.profile import ColocationProfile
from model.qos import QoSClass
from model.selector import Selector

ANNOTATION_SKIP_RESOURCES = "config.koordinator.sh/skip-update-resources"
"""On a profile, whatever it holds: the pods it applies to keep their cpu and memory."""

_PERCENT = re.compile(r"[0-9]{1,3}%")


class _Selected(msgspec.Struct, frozen=True):
    """A selector at a time, so that one that cannot be read does not hide the other."""

    selector: LabelSelector | None = None


class _Fields(msgspec.Struct, frozen=True, rename="camel"):
    """All of the spec but its selectors."""

    probability: int | str | None = None
    qos_class: QoSClass | None = None
    priority_class_name: str | None = None
    koordinator_priority: Int32 | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    label_keys: dict[str, str] | None = field(name="labelKeysMapping", default=None)
    annotation_keys: dict[str, str] | None = field(name="annotationKeysMapping", default=None)
    label_suffixes: dict[str, str] | None = None
    scheduler_name: str | None = None
    patch: dict[str, Any] | None = None


def profile(source: ClusterColocationProfile) -> ColocationProfile:
    """What cannot be read is told in the profile's `fault`; of the rest only its selectors count then."""
    name, spec = source.metadata.name, source.spec
    where = f"ClusterColocationProfile {name}: spec"
    if not isinstance(spec, dict):
        return ColocationProfile(name, fault="" if spec is None else f"{where}: is not an object")
    faults: list[ConfigurationFault] = []
    namespaces = _selector(spec, "namespaceSelector", where, faults)
    pods = _selector(spec, "selector", where, faults)
    fields = _fields(spec, where, faults)
    skips = ANNOTATION_SKIP_RESOURCES in (source.metadata.annotations or {})
    if fields is None or faults:
        return ColocationProfile(name, namespaces, pods, fault=str(faults[0]))
    return ColocationProfile(
        name,
        namespaces,
        pods,
        probability_pct=_percent(fields.probability),
        labels=fields.labels or {},
        annotations=fields.annotations or {},
        label_keys=fields.label_keys or {},
        annotation_keys=fields.annotation_keys or {},
        label_suffixes=fields.label_suffixes or {},
        scheduler_name=fields.scheduler_name or "",
        qos=fields.qos_class or QoSClass.NONE,
        priority_class_name=fields.priority_class_name or "",
        sub_priority=fields.koordinator_priority,
        patch=fields.patch,
        rewrites=not skips,
    )


def _selector(spec: dict[str, Any], name: str, where: str, faults: list[ConfigurationFault]) -> Selector:
    try:
        found = checked({"selector": spec.get(name)}, _Selected, "").selector
    except ConfigurationFault as fault:
        told = fault.where.removeprefix(".selector")
        faults.append(ConfigurationFault(f"{where}.{name}{told}", fault.what, fault.fix))
        return Selector()
    return found.in_model() if found else Selector()


def _fields(spec: dict[str, Any], where: str, faults: list[ConfigurationFault]) -> _Fields | None:
    try:
        fields = checked(spec, _Fields, where)
        check_depth(fields.patch, f"{where}.patch")
        if fields.probability is not None and not 0 <= _percent(fields.probability) <= 100:
            raise ConfigurationFault(f"{where}.probability", f"is {fields.probability!r}", "write 0 to 100, or 30%")
    except ConfigurationFault as fault:
        faults.append(fault)
        return None
    return fields


def _percent(told: int | str | None) -> int:
    """Negative where it cannot be read; every pod where nothing is said."""
    if told is None:
        return 100
    if isinstance(told, int):
        return told
    return int(told[:-1]) if _PERCENT.fullmatch(told) else -1
