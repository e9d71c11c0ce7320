"""Pods that a controller is going to make, looked at while the person who wrote its template still reads the answer.

The pods' own warnings reach the controller alone, and their refusal an Event of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from admission.core.podfields import Document, with_containers

_APPS, _BATCH = "apps", "batch"
_PLACES = {
    (_APPS, "Deployment"): "spec.template",
    (_APPS, "DaemonSet"): "spec.template",
    (_APPS, "StatefulSet"): "spec.template",
    (_BATCH, "Job"): "spec.template",
    (_BATCH, "CronJob"): "spec.jobTemplate.spec.template",
}
"""API group and kind → where a pod's template stands."""


class Template(msgspec.Struct, frozen=True):
    """`where` names the object, `place` the field; `pod` is what a controller would send for creation."""

    where: str
    place: str
    pod: Document


def holds(group: str, kind: str) -> bool:
    return (group, kind) in _PLACES


def template_of(group: str, kind: str, raw: bytes, namespace: str) -> Template | None:
    """None for a kind without a template, or one without a spec in it."""
    place = _PLACES.get((group, kind))
    if place is None:
        return None
    source = msgspec.json.decode(raw, type=dict[str, Any])
    found: Any = source
    for key in place.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, dict) or not _fields(found, "spec"):
        return None
    own = _fields(source, "metadata")
    name = own.get("name") or own.get("generateName") or ""
    metadata = {**_fields(found, "metadata"), "namespace": namespace, "generateName": f"{name}-"}
    return Template(f"{kind} {namespace}/{name}", place, {**found, "metadata": metadata})


def _fields(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Empty where there are none: an API server lets nothing else through."""
    found = source.get(name)
    return found if isinstance(found, dict) else {}


def defaulted(pod: Mapping[str, Any], priority: int | None) -> Document:
    """With what the API server fills in before it asks: the priority of its class, a limit as the request."""
    found = with_containers(pod, _requesting)
    known = found["spec"].get("priority")
    return {**found, "spec": {**found["spec"], "priority": priority if known is None else known}}


def _requesting(container: Document) -> Document:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits:
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}
