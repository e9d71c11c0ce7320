"""Settings of load-aware placement; names of Koordinator's LoadAwareSchedulingArgs stand in the descriptions.

Defaults are those of Koordinator's shipped scheduler-config.yaml, which switches the load filter off.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from model.loadlimits import LoadLimits, Statistic, UsageLimits

_Weight = Annotated[int, Meta(ge=0, le=100)]


class LoadPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    """How measured use and estimates decide where a pod may go and where it goes best."""

    expiry_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="A node's usage this old counts as unknown; 0: never. nodeMetricExpirationSeconds; 300 as "
            "Koordinator ships it, its built-in default is 180.",
        ),
    ] = 300.0
    filter_expired: Annotated[
        bool,
        Meta(
            description="No pod where the NodeMetric is too old or does not say what the node uses; nodes without a "
            "NodeMetric take pods. filterExpiredNodeMetrics; false as Koordinator ships it: limits hold against the "
            "last known usage."
        ),
    ] = False
    place_when_expired: Annotated[
        bool,
        Meta(
            description="With filter_expired: nodes of expired usage take pods, unlimited, instead of none. "
            "enableScheduleWhenNodeMetricsExpired."
        ),
    ] = False
    cpu_weight: Annotated[_Weight, Meta(description="Weight of CPU in the score. resourceWeights.")] = 1
    memory_weight: Annotated[_Weight, Meta(description="Weight of memory in the score. resourceWeights.")] = 1
    dominant_weight: Annotated[
        _Weight, Meta(description="Weight of whichever is scarcer, besides its own. dominantResourceWeight.")
    ] = 0
    limits: Annotated[
        UsageLimits, Meta(description="No pod where it would use more. usageThresholds; off as Koordinator ships it.")
    ] = UsageLimits()
    prod_limits: Annotated[
        UsageLimits,
        Meta(description="For prod pods instead: no more where prod pods would use more. prodUsageThresholds."),
    ] = UsageLimits()
    aggregated_limits: Annotated[
        UsageLimits,
        Meta(description="Instead of limits, against limit_statistic. aggregated.usageThresholds."),
    ] = UsageLimits()
    limit_statistic: Annotated[
        Statistic,
        Meta(description="What aggregated_limits count. aggregated.usageAggregationType and usageAggregatedDuration."),
    ] = Statistic()
    score_statistic: Annotated[
        Statistic,
        Meta(description="What scores count. aggregated.scoreAggregationType and scoreAggregatedDuration."),
    ] = Statistic()
    score_prod_usage: Annotated[
        bool, Meta(description="Prod pods are scored by what prod pods use. scoreAccordingProdUsage.")
    ] = False
    prod_includes_system: Annotated[
        bool, Meta(description="The node's own use counts as prod use. prodUsageIncludeSys.")
    ] = False
    cpu_factor_pct: Annotated[
        int,
        Meta(ge=1, le=1000, description="A pod is taken to use this much of the CPU it asks. estimatedScalingFactors."),
    ] = 85
    memory_factor_pct: Annotated[
        int,
        Meta(ge=1, le=1000, description="A pod is taken to use this much of its memory. estimatedScalingFactors."),
    ] = 70
    custom_estimates: Annotated[
        bool, Meta(description="Pods may set their own factors and times by annotation. allowCustomizeEstimation.")
    ] = False
    after_scheduled_seconds: Annotated[
        float | None,
        Meta(description="An estimate stands in this long at least. estimatedSecondsAfterPodScheduled; null: unset."),
    ] = None
    after_initialized_seconds: Annotated[
        float | None,
        Meta(
            description="The same, from the end of the init containers on. estimatedSecondsAfterInitialized; null: "
            "unset."
        ),
    ] = None
    live_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Time until an agent's report over the link reflects a new pod; the agent's heartbeat. "
            "Koordinator has no such report.",
        ),
    ] = 10.0


def limits_of(policy: LoadPolicy, own: LoadLimits) -> LoadLimits:
    """What holds for a node: each of its own limits where it sets one, the policy's otherwise."""
    aggregated, statistic = own.aggregated, own.statistic
    if not aggregated and policy.limit_statistic.kind:
        aggregated, statistic = policy.aggregated_limits, policy.limit_statistic
    return LoadLimits(
        own.usage or policy.limits, own.prod or policy.prod_limits, aggregated, statistic if aggregated else Statistic()
    )
