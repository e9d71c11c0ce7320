"""`replicaResources` of a TrainingJob, laid into its pod template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.queues.quota import GPU


class ReplicaResources(msgspec.Struct, frozen=True):
    """What one pod asks for; amounts as they were written."""

    gpu: Any = None
    cpu: Any = None
    memory: Any = None


def with_resources(template: Mapping[str, Any], told: ReplicaResources | None) -> Mapping[str, Any]:
    """The template in which the first container requests, and is limited to, what it does not say itself."""
    amounts = _amounts(told) if told is not None else {}
    spec = template["spec"]
    first, *others = spec["containers"]
    own = first.get("resources") or {}
    requests, limits = own.get("requests") or {}, own.get("limits") or {}
    missing = {name: amount for name, amount in amounts.items() if name not in requests and name not in limits}
    if not missing:
        return template
    resources = {**own, "requests": {**requests, **missing}, "limits": {**limits, **missing}}
    return {**template, "spec": {**spec, "containers": [{**first, "resources": resources}, *others]}}


def _amounts(told: ReplicaResources) -> dict[str, Any]:
    amounts = {"cpu": told.cpu, "memory": told.memory, GPU: str(told.gpu) if told.gpu else None}
    return {name: amount for name, amount in amounts.items() if amount is not None}
