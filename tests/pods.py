"""Pods of tests: fields by their own names, whichever part of a pod they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from model.pod.colocation import Colocation
from model.pod.pod import Pod
from model.pod.spec import PodSpec
from model.pod.status import PodStatus
from model.resources import ResourceVector

_PARTS = {"spec": PodSpec, "status": PodStatus, "colocation": Colocation}
_PART_OF = {field: part for part, kind in _PARTS.items() for field in kind.__struct_fields__}


def make_pod(namespace: str, name: str, uid: str, requests: ResourceVector | None = None, **fields: Any) -> Pod:
    """A pod with these fields, and defaults for all others."""
    asked = {} if requests is None else {"requests": requests}
    return with_fields(Pod(namespace, name, uid), **asked, **fields)


def with_fields(pod: Pod, **fields: Any) -> Pod:
    """The same pod, these fields apart."""
    changed: dict[str, Any] = {name: value for name, value in fields.items() if name not in _PART_OF}
    for part, own in _by_part(fields).items():
        changed[part] = msgspec.structs.replace(getattr(pod, part), **own)
    return msgspec.structs.replace(pod, **changed)


def _by_part(fields: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, value in fields.items():
        if name in _PART_OF:
            found.setdefault(_PART_OF[name], {})[name] = value
    return found
