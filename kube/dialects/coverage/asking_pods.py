"""Fields of pods, profiles and PodGroups, in Koordinator's words, that are not acted on, or in part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kube.dialects.coverage import objects, pods
from kube.dialects.coverage.asking import RowsByKey, asks, gathered, keyed, places
from kube.dialects.coverage.rows import Asked, CoverageRow, Surface
from kube.objects import ClusterColocationProfile, Container, Metadata, PodSpec

_LABELS = RowsByKey(row for row in pods.ROWS if row.surface is Surface.POD_LABEL)
_ANNOTATIONS = RowsByKey(row for row in pods.ROWS if row.surface in (Surface.POD_ANNOTATION, Surface.GANG))
_RESOURCES = RowsByKey(row for row in pods.ROWS if row.surface is Surface.POD_RESOURCE)
_GROUP_FIELDS = tuple(row for row in pods.ROWS if row.surface is Surface.GANG and row.field.startswith("spec."))
_PROFILE = tuple(row for row in objects.ROWS if row.surface is Surface.PROFILE)
_QOS = "koordinator.sh/qosClass"

_Found = Iterator[tuple[CoverageRow, str]]


def in_pod(metadata: Metadata, spec: PodSpec) -> tuple[Asked, ...]:
    """Also of a pod template."""
    return gathered(_in_pod(metadata, spec))


def in_profile(source: ClusterColocationProfile) -> tuple[Asked, ...]:
    """What it writes into pods, and what itself is labelled with."""
    return gathered(_in_profile(source))


def in_pod_group(metadata: Metadata, spec: Mapping[str, Any]) -> tuple[Asked, ...]:
    """scheduling.sigs.k8s.io's PodGroup."""
    return gathered(_in_pod_group(metadata, spec))


def _in_pod(metadata: Metadata, spec: PodSpec) -> _Found:
    yield from keyed(_LABELS, metadata.labels, "metadata.labels")
    yield from keyed(_ANNOTATIONS, metadata.annotations, "metadata.annotations")
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or ())):
        for index, container in enumerate(containers):
            yield from _in_container(container, f"spec.{field}[{index}].resources")


def _in_container(container: Container, place: str) -> _Found:
    told = container.resources
    if told is None:
        return
    for field, amounts in (("requests", told.requests), ("limits", told.limits)):
        for name in amounts or {}:
            row = _RESOURCES.first(name, None)
            if row is not None and row.warns:
                yield row, f"{place}.{field}[{name}]"


def _in_profile(source: ClusterColocationProfile) -> _Found:
    metadata, spec = source.metadata, source.spec if isinstance(source.spec, dict) else {}
    for field, told in (("labels", metadata.labels), ("annotations", metadata.annotations)):
        for key, value in (told or {}).items():
            row = next((row for row in _PROFILE if row.field == f"metadata.{field}[{key}]"), None)
            if row is not None and row.warns and asks(row, value):
                yield row, row.field
    qos = {_QOS: spec["qosClass"]} if isinstance(spec.get("qosClass"), str) else {}
    yield from ((row, "spec.qosClass=" + qos[_QOS]) for row, _ in keyed(_LABELS, qos, ""))
    for place, written in (("spec", spec), ("spec.patch.metadata", _metadata(spec.get("patch")))):
        yield from keyed(_LABELS, _texts(written.get("labels")), f"{place}.labels")
        yield from keyed(_ANNOTATIONS, _texts(written.get("annotations")), f"{place}.annotations")


def _metadata(patch: object) -> dict[str, Any]:
    found = patch.get("metadata") if isinstance(patch, dict) else None
    return found if isinstance(found, dict) else {}


def _texts(told: object) -> dict[str, str]:
    return {key: value for key, value in told.items() if isinstance(value, str)} if isinstance(told, dict) else {}


def _in_pod_group(metadata: Metadata, spec: Mapping[str, Any]) -> _Found:
    yield from keyed(_ANNOTATIONS, metadata.annotations, "metadata.annotations")
    for row in _GROUP_FIELDS:
        if row.warns:
            found = places(dict(spec), row.field.split(".")[1:], "spec")
            yield from ((row, place) for place, value in found if asks(row, value))
