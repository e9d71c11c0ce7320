"""Kubernetes' Job (batch/v1) as a job that waits whole.

Its pods are one set, `main`, of as many as run at once. Source: kueue pkg/controller/jobs/job/job_controller.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import checked
from kube.dialects.gangs.membership import whole
from kube.objects import Condition, UntypedObject
from model.fault import ConfigurationFault
from model.suspended.job import EQUAL_COMPLETIONS, MIN_PARALLELISM, JobEnd, PodTemplate

MAIN = "main"


class _Spec(msgspec.Struct, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    template: dict[str, Any] = {}


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    start_time: str = ""
    conditions: list[Condition] = []


def pod_sets(source: UntypedObject, where: str) -> tuple[PodTemplate, ...]:
    """What it asks for. Raises ConfigurationFault."""
    told = checked(source.spec or {}, _Spec, f"{where}: spec")
    count, least = _at_once(told), _minimum(source, where)
    return (PodTemplate(MAIN, count, told.template, least if least is not None and least < count else None),)


def with_templates(spec: Mapping[str, Any], templates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The spec with other templates, by pod set."""
    return {**spec, "template": templates.get(MAIN, spec.get("template"))}


def with_counts(source: UntypedObject, spec: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, Any]:
    """The spec with so many pods at once, where the Job may start with less than all."""
    annotations = source.metadata.annotations or {}
    if MIN_PARALLELISM not in annotations or MAIN not in counts:
        return dict(spec)
    number = counts[MAIN]
    equal = {"completions": number} if annotations.get(EQUAL_COMPLETIONS) == "true" else {}
    return {**spec, "parallelism": number, **equal}


def progress(source: UntypedObject, where: str) -> dict[str, Any]:
    """How far it has come, as fields of SuspendedJob. Raises ConfigurationFault."""
    told = checked(source.status or {}, _Status, f"{where}: status")
    asked = checked(source.spec or {}, _Spec, f"{where}: spec")
    return {
        "started": bool(told.start_time),
        "pods": told.active + told.terminating,
        "ready": told.ready + told.succeeded,
        "reclaimable": _reclaimable(asked, told.succeeded),
        "end": _end(told),
    }


def _minimum(source: UntypedObject, where: str) -> int | None:
    text = (source.metadata.annotations or {}).get(MIN_PARALLELISM)
    if text is None:
        return None
    number = whole(text)
    if number is None or not 0 < number < 1 << 31:
        field = f"{where}: metadata.annotations[{MIN_PARALLELISM}]"
        raise ConfigurationFault(field, f"is {text[:60]!r}", "write a whole number of 1 or more")
    return number


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
