"""Fields of statuses that both kinds of jobs have: times, counts and phases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from kube.objects import Time
from model.job.status import JobPhase, TaskCounts

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


def time_text(seconds: float) -> str | None:
    """RFC 3339 in UTC with whole seconds; None for no time."""
    if not seconds:
        return None
    text: str = msgspec.to_builtins(msgspec.convert(int(seconds), Time, strict=False))
    return text


def counts_of(written: Mapping[str, int]) -> TaskCounts:
    """By the names that the model has."""
    known = TaskCounts.__struct_fields__
    return TaskCounts(**{name: count for name, count in written.items() if name in known})


def converted(raw: object, kind: type[T]) -> T:
    """A status as `kind`; an empty one where it cannot be read."""
    try:
        return msgspec.convert(raw or {}, kind)
    except (msgspec.ValidationError, RecursionError):
        return kind()


def phase_of(text: str) -> JobPhase:
    """The phase of that name; a job begins with PENDING."""
    return JobPhase(text) if text in tuple(JobPhase) else JobPhase.PENDING


def without_nothing(told: Mapping[str, Any]) -> dict[str, Any]:
    """The same without fields that have no value, those of objects in it included."""
    return {
        name: {key: inner for key, inner in value.items() if inner is not None} if isinstance(value, dict) else value
        for name, value in told.items()
        if value is not None
    }
