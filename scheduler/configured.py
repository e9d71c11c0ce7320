"""Settings with what Koordinator's `koord-scheduler-config` says in place of their own word. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kube.dialects.koordinator.schedulerconfig import (
    CoschedulingArgs,
    FitArgs,
    LoadAwareArgs,
    ProfileArgs,
    SchedulerConfig,
)
from model.loadlimits import Statistic, StatisticKind, UsageLimits
from model.resources import CPU, MEMORY
from model.scoring import ScorePlugin
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.scores.policy import SchedulerProfile, ScoredResource, ScorePolicy, ShapePoint
from scheduler.settings import SchedulerSettings

_WEIGHT_OF = {
    ScorePlugin.FIT: "fit_weight",
    ScorePlugin.BALANCE: "balance_weight",
    ScorePlugin.LOAD: "load_weight",
    ScorePlugin.NODE_AFFINITY: "affinity_weight",
    ScorePlugin.TAINTS: "taint_weight",
    ScorePlugin.SPREAD: "spread_weight",
    ScorePlugin.POD_AFFINITY: "company_weight",
}
"""Score plugin → field of ScorePolicy."""


class Overlaid(msgspec.Struct, frozen=True):
    """The settings in force; whether the document sets preemption's switch; a sentence for each profile that nothing
    acts on.
    """

    settings: SchedulerSettings
    switched: bool = False
    unserved: tuple[str, ...] = ()


def overlaid(base: SchedulerSettings, told: SchedulerConfig) -> Overlaid:
    """A profile is for one of this scheduler's names; one without a name is for its first.

    Arguments of Coscheduling and LoadAwareScheduling count for all pods, by the first profile that has them. Names that
    share a profile here share it still, but for those that the document has one for.
    """
    first = base.served[0]
    ours: dict[str, ProfileArgs] = {}
    for each in told.profiles:
        if _serves(base, each):
            ours.setdefault(each.scheduler_name or first, each)
    gangs = next((each.coscheduling for each in ours.values() if each.coscheduling), None)
    load = next((each.load_aware for each in ours.values() if each.load_aware), None)
    settings = msgspec.structs.replace(
        _coscheduling(base, gangs) if gangs else base,
        load=_load(base.load, load) if load else base.load,
        profiles=tuple(found for each in _all(base) for found in _split(each, ours)),
    )
    switched = gangs is not None and gangs.enable_preemption is not None
    return Overlaid(settings, switched, tuple(_unserved(base, told)))


def _serves(base: SchedulerSettings, told: ProfileArgs) -> bool:
    name = told.scheduler_name
    return not name or (name in base.served and name not in base.plain)


def _unserved(base: SchedulerSettings, told: SchedulerConfig) -> Iterator[str]:
    names = ", ".join(name for name in base.served if name not in base.plain)
    seen: set[str] = set()
    for each in told.profiles:
        name = each.scheduler_name or base.served[0]
        if not _serves(base, each):
            yield f"profile {name}: nothing acts on it, since this scheduler's profiles are for {names}"
        elif name in seen:
            yield f"profile {name}: is given twice, and the first one counts"
        seen.add(name)


def _all(base: SchedulerSettings) -> Iterator[SchedulerProfile]:
    """With one for each name that has none."""
    yield from base.profiles
    told = {name for profile in base.profiles for name in profile.names}
    for name in base.served:
        if name not in told:
            yield SchedulerProfile((name,))


def _coscheduling(base: SchedulerSettings, told: CoschedulingArgs) -> SchedulerSettings:
    enable = base.preemption.enable if told.enable_preemption is None else told.enable_preemption
    return msgspec.structs.replace(
        base,
        preemption=msgspec.structs.replace(base.preemption, enable=enable),
        gang_timeout_seconds=told.default_timeout or base.gang_timeout_seconds,
        gang_match_policy=told.default_match_policy or base.gang_match_policy,
    )


def _load(base: LoadPolicy, told: LoadAwareArgs) -> LoadPolicy:
    aggregated = told.aggregated
    changes = {
        "expiry_seconds": told.node_metric_expiration_seconds,
        "filter_expired": told.filter_expired_node_metrics,
        "place_when_expired": told.enable_schedule_when_node_metrics_expired,
        "cpu_weight": (told.resource_weights or {}).get(CPU),
        "memory_weight": (told.resource_weights or {}).get(MEMORY),
        "dominant_weight": told.dominant_resource_weight,
        "limits": _limits(told.usage_thresholds),
        "prod_limits": _limits(told.prod_usage_thresholds),
        "score_prod_usage": told.score_according_prod_usage,
        "prod_includes_system": told.prod_usage_include_sys,
        "cpu_factor_pct": (told.estimated_scaling_factors or {}).get(CPU),
        "memory_factor_pct": (told.estimated_scaling_factors or {}).get(MEMORY),
        "custom_estimates": told.allow_customize_estimation,
        "after_scheduled_seconds": told.estimated_seconds_after_pod_scheduled,
        "after_initialized_seconds": told.estimated_seconds_after_initialized,
        "aggregated_limits": _limits(aggregated.usage_thresholds) if aggregated else None,
        "limit_statistic": _statistic(aggregated.usage_aggregation_type, aggregated.usage_aggregated_duration)
        if aggregated
        else None,
        "score_statistic": _statistic(aggregated.score_aggregation_type, aggregated.score_aggregated_duration)
        if aggregated
        else None,
    }
    return msgspec.structs.replace(base, **{name: value for name, value in changes.items() if value is not None})


def _limits(percents: dict[str, int] | None) -> UsageLimits | None:
    return None if percents is None else UsageLimits(percents.get(CPU, 0), percents.get(MEMORY, 0))


def _statistic(kind: StatisticKind | None, duration_seconds: float | None) -> Statistic | None:
    return None if kind is None else Statistic(kind, float(duration_seconds or 0.0))


def _split(base: SchedulerProfile, told: Mapping[str, ProfileArgs]) -> Iterator[SchedulerProfile]:
    """As many as the document tells apart."""
    own = [name for name in base.names if name in told]
    for name in own[1:]:
        yield SchedulerProfile((name,), _score(base.score, told[name]))
    names = tuple(name for name in base.names if name not in own[1:])
    yield msgspec.structs.replace(base, names=names, score=_score(base.score, told[own[0]]) if own else base.score)


def _score(base: ScorePolicy, told: ProfileArgs) -> ScorePolicy:
    changes: dict[str, object] = {_WEIGHT_OF[name]: weight for name, weight in told.weights}
    changes |= _fit(told.fit) if told.fit else {}
    if told.balanced and told.balanced.resources:
        changes["balanced"] = tuple(each.name for each in told.balanced.resources)
    if told.inter_pod_affinity and told.inter_pod_affinity.hard_pod_affinity_weight is not None:
        changes["required_affinity_weight"] = told.inter_pod_affinity.hard_pod_affinity_weight
    return msgspec.structs.replace(base, **changes)


def _fit(told: FitArgs) -> dict[str, object]:
    strategy = told.scoring_strategy
    if strategy is None:
        return {}
    found: dict[str, object] = {}
    if strategy.type:
        found["strategy"] = strategy.type
    if strategy.resources:
        # No weight is a weight of 1, and so is 0: kube-scheduler fills it in.
        found["resources"] = tuple(ScoredResource(each.name, each.weight or 1) for each in strategy.resources)
    if strategy.shape:
        found["shape"] = tuple(ShapePoint(each.utilization, each.score) for each in strategy.shape)
    return found
