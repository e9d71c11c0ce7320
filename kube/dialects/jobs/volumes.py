"""Volumes of a Volcano Job, which all its pods mount."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


class JobVolume(msgspec.Struct, frozen=True, rename="camel"):
    """An existing claim by its name; without one an empty folder of each pod."""

    mount_path: str = ""
    volume_claim_name: str | None = None
    volume_claim: Any = None


def with_volumes(template: Mapping[str, Any], volumes: Iterable[JobVolume]) -> Mapping[str, Any]:
    """The template with each volume, mounted by every container."""
    volumes = tuple(volumes)
    if not volumes:
        return template
    spec = template["spec"]
    mounts = [{"name": _name(index), "mountPath": volume.mount_path} for index, volume in enumerate(volumes)]
    containers = {
        field: [{**each, "volumeMounts": [*(each.get("volumeMounts") or ()), *mounts]} for each in spec[field]]
        for field in ("containers", "initContainers")
        if spec.get(field)
    }
    sources = [{"name": _name(index), **_source(volume)} for index, volume in enumerate(volumes)]
    return {**template, "spec": {**spec, **containers, "volumes": [*(spec.get("volumes") or ()), *sources]}}


def _name(index: int) -> str:
    return f"job-volume-{index}"


def _source(volume: JobVolume) -> dict[str, Any]:
    if volume.volume_claim_name:
        return {"persistentVolumeClaim": {"claimName": volume.volume_claim_name}}
    return {"emptyDir": {}}
