"""Pod templates of jobs that wait whole: what an admission puts in, and what is taken out again.

Source: kueue pkg/podset/podset.go. Whatever a user wrote stays; a template is restored by the Workload, which has it as
it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import msgspec

from kube.dialects.documents.document import checked
from model.suspended.job import POD_SET, WORKLOAD, PodSetInjection, PodTemplate, SuspendedJob

_MOVABLE = (
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec", "nodeSelector"),
    ("spec", "tolerations"),
)
"""What an admission changes, and the API server lets be changed while a job is suspended."""


class _Metadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_selector: dict[str, str] | None = None
    tolerations: list[dict[str, Any]] | None = None


class _Template(msgspec.Struct, frozen=True):
    metadata: _Metadata | None = None
    spec: _PodSpec | None = None


def check_template(template: Mapping[str, Any], where: str) -> None:
    """Raises ConfigurationFault where what an admission changes is nothing that it can be added to."""
    checked(template, _Template, where)


def injected(template: Mapping[str, Any]) -> bool:
    """Whether it holds what an admission put there."""
    metadata = template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and WORKLOAD in annotations


def pod_of(job: SuspendedJob, pods: PodTemplate) -> dict[str, Any]:
    """A pod of the set, of no name yet."""
    own = pods.template.get("metadata") or {}
    metadata = {name: own[name] for name in ("labels", "annotations") if own.get(name)}
    metadata |= {"generateName": f"{job.name}-", "namespace": job.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pods.template.get("spec") or {}}


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
            if not after[part] and part not in original:
                del after[part]
    return after
