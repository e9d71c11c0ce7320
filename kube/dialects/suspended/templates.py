"""Pod templates of jobs that wait whole: what an admission puts in, and what is taken out again.

Source: kueue pkg/podset/podset.go. Whatever a user wrote stays; a template is restored by the Workload, which has it as
it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from model.suspended.job import POD_SET, WORKLOAD, PodSetInjection

_MOVABLE = (
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec", "nodeSelector"),
    ("spec", "tolerations"),
)
"""What an admission changes, and the API server lets be changed while a job is suspended."""


def injected(template: Mapping[str, Any]) -> bool:
    """Whether it holds what an admission put there."""
    metadata = template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and WORKLOAD in annotations


def with_injection(template: Mapping[str, Any], injection: PodSetInjection, workload: str) -> dict[str, Any]:
    """The template of an admitted job. Raises ValueError where its own node selector says otherwise."""
    after: dict[str, Any] = deepcopy(dict(template))
    metadata, spec = after.setdefault("metadata", {}), after.setdefault("spec", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), POD_SET: injection.name}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), WORKLOAD: workload}
    own = spec.get("nodeSelector") or {}
    for key, value in injection.node_selector.items():
        if own.get(key, value) != value:
            raise ValueError(f"its nodeSelector has {key}: {own[key]}, and its flavor is {value}")
    if injection.node_selector:
        spec["nodeSelector"] = {**own, **injection.node_selector}
    known = list(spec.get("tolerations") or ())
    known += [dict(each) for each in injection.tolerations if dict(each) not in known]
    if known:
        spec["tolerations"] = known
    return after


def restored(template: Mapping[str, Any], original: Mapping[str, Any]) -> dict[str, Any]:
    """The template with everything that an admission changes as it was in the original."""
    after: dict[str, Any] = deepcopy(dict(template))
    for part, field in _MOVABLE:
        before = (original.get(part) or {}).get(field)
        if before is not None:
            after.setdefault(part, {})[field] = deepcopy(before)
        elif isinstance(after.get(part), dict):
            after[part].pop(field, None)
    return after
