"""A node's own limits of use, which replace the scheduler's settings for it.

Source: Koordinator apis/extension/load_aware.go (CustomUsageThresholds), plugins/loadaware/helper.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from kube.dialects.documents.document import GoDuration, annotated
from model.loadlimits import LoadLimits, Statistic, StatisticKind, UsageLimits

ANNOTATION = "scheduling.koordinator.sh/usage-thresholds"
_Percents = dict[str, Annotated[int, Meta(ge=0, le=100)]]


class _Aggregated(msgspec.Struct, frozen=True, rename="camel"):
    usage_thresholds: _Percents | None = None
    usage_aggregation_type: StatisticKind | None = None
    usage_aggregated_duration: GoDuration | None = None


class _Thresholds(msgspec.Struct, frozen=True, rename="camel"):
    usage_thresholds: _Percents | None = None
    prod_usage_thresholds: _Percents | None = None
    aggregated_usage: _Aggregated | None = None


def load_limits(annotations: Mapping[str, str], where: str) -> LoadLimits:
    """What the node `where` sets; unset limits are false. Raises ConfigurationFault naming annotation and field.

    A statistic without a kind or without limits counts as unset, as in Koordinator.
    """
    found = annotated(annotations, ANNOTATION, _Thresholds, where) or _Thresholds()
    aggregated = found.aggregated_usage or _Aggregated()
    statistic = Statistic(
        aggregated.usage_aggregation_type or StatisticKind.NONE, float(aggregated.usage_aggregated_duration or 0.0)
    )
    limits = _limits(aggregated.usage_thresholds)
    used = limits if limits and statistic.kind else UsageLimits()
    return LoadLimits(
        _limits(found.usage_thresholds), _limits(found.prod_usage_thresholds), used, statistic if used else Statistic()
    )


def _limits(percents: _Percents | None) -> UsageLimits:
    return UsageLimits((percents or {}).get("cpu", 0), (percents or {}).get("memory", 0))
