"""Kubernetes' Job (batch/v1) as a job that waits whole.

Its pods are one set, `main`, of as many as run at once. Source: kueue pkg/controller/jobs/job/job_controller.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import checked
from kube.objects import Condition
from model.suspended.job import JobEnd, PodTemplate

MAIN = "main"


class _Spec(msgspec.Struct, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    template: dict[str, Any] = {}


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    start_time: str = ""
    conditions: list[Condition] = []


def pod_sets(spec: object, where: str) -> tuple[PodTemplate, ...]:
    """What it asks for. Raises ConfigurationFault."""
    told = checked(spec or {}, _Spec, f"{where}: spec")
    return (PodTemplate(MAIN, _at_once(told), told.template),)


def suspended(spec: Any) -> bool:
    """Whether it makes no pods."""
    return isinstance(spec, dict) and spec.get("suspend") is True


def with_suspend(spec: Mapping[str, Any], value: bool) -> dict[str, Any]:
    """The spec that makes pods, or none."""
    return {**spec, "suspend": value}


def with_templates(spec: Mapping[str, Any], templates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The spec with other templates, by pod set."""
    return {**spec, "template": templates.get(MAIN, spec.get("template"))}


def progress(spec: object, status: object, where: str) -> dict[str, Any]:
    """How far it has come, as fields of SuspendedJob. Raises ConfigurationFault."""
    told, asked = checked(status or {}, _Status, f"{where}: status"), checked(spec or {}, _Spec, f"{where}: spec")
    return {
        "started": bool(told.start_time),
        "pods": told.active + told.terminating,
        "ready": told.ready + told.succeeded,
        "reclaimable": _reclaimable(asked, told.succeeded),
        "end": _end(told),
    }


def _at_once(spec: _Spec) -> int:
    """How many pods it has at once."""
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


def _reclaimable(spec: _Spec, succeeded: int) -> dict[str, int]:
    """Pods that it will not make again, since fewer are left than it has at once."""
    if spec.completions is None or not succeeded:
        return {}
    count, left = _at_once(spec), max(0, spec.completions - succeeded)
    return {MAIN: count - left} if left < count else {}


def _end(status: _Status) -> JobEnd | None:
    for each in status.conditions:
        if each.met and each.type in ("Complete", "Failed"):
            return JobEnd(each.type == "Complete", each.message)
    return None
