"""Load limits: how much of a node may be in use before no more is placed there, and by which statistic."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta


class StatisticKind(StrEnum):
    """A statistic of NodeMetric's aggregated usages; NONE: the newest usage itself."""

    NONE = ""
    AVG = "avg"
    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"


class UsageLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    """Percent of the node's allocatable; 0: no limit."""

    cpu_pct: Annotated[int, Meta(ge=0, le=100, description="Percent of allocatable CPU; 0: no limit.")] = 0
    memory_pct: Annotated[int, Meta(ge=0, le=100, description="Percent of allocatable memory; 0: no limit.")] = 0

    def __bool__(self) -> bool:
        return self.cpu_pct > 0 or self.memory_pct > 0


class Statistic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    """One of the statistics a node reports."""

    kind: Annotated[
        StatisticKind, Meta(description="avg, p50, p90, p95 or p99; empty: the newest usage, no statistic.")
    ] = StatisticKind.NONE
    duration_seconds: Annotated[
        float, Meta(ge=0, description="Over this time, as the node reports it; 0: the longest it reports.")
    ] = 0.0


class LoadLimits(msgspec.Struct, frozen=True, cache_hash=True):
    """Limits of one node: all it uses, what its prod pods use, and a statistic of all it uses (which then replaces
    the first). An unset one is false.
    """

    usage: UsageLimits = UsageLimits()
    prod: UsageLimits = UsageLimits()
    aggregated: UsageLimits = UsageLimits()
    statistic: Statistic = Statistic()
