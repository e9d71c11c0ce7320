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
    ScorePlugin.POD_AFFINITY: "pod_affinity_weight",
}
"""Score plugin → field of ScorePolicy."""


class Overlaid(msgspec.Struct, frozen=True):
    """The settings in force; whether the document sets preemption's switch; a sentence for each profile that nothing
    acts on.
    """

    settings: SchedulerSettings
    switched: bool = False
    unserved: tuple[str, ...] = ()


def overlaid(base: SchedulerSettings, document: SchedulerConfig) -> Overlaid:
    """A profile is for one of this scheduler's names; one without a name is for its first.

    Arguments of Coscheduling and LoadAwareScheduling count for all pods, by the first profile that has them. Names that
    share a profile here share it still, but for those that the document has one for.
    """
    first = base.served[0]
    ours: dict[str, ProfileArgs] = {}
    for each in document.profiles:
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
    return Overlaid(settings, switched, tuple(_unserved(base, document)))


def _serves(base: SchedulerSettings, document: ProfileArgs) -> bool:
    name = document.scheduler_name
    return not name or (name in base.served and name not in base.plain)


def _unserved(base: SchedulerSettings, document: SchedulerConfig) -> Iterator[str]:
    names = ", ".join(name for name in base.served if name not in base.plain)
    seen: set[str] = set()
    for each in document.profiles:
        name = each.scheduler_name or base.served[0]
        if not _serves(base, each):
            yield f"profile {name}: nothing acts on it, since this scheduler's profiles are for {names}"
        elif name in seen:
            yield f"profile {name}: is given twice, and the first one counts"
        seen.add(name)


def _all(base: SchedulerSettings) -> Iterator[SchedulerProfile]:
    """With one for each name that has none."""
    yield from base.profiles
    named = {name for profile in base.profiles for name in profile.names}
    for name in base.served:
        if name not in named:
            yield SchedulerProfile((name,))


def _coscheduling(base: SchedulerSettings, document: CoschedulingArgs) -> SchedulerSettings:
    enable = base.preemption.enable if document.enable_preemption is None else document.enable_preemption
    return msgspec.structs.replace(
        base,
        preemption=msgspec.structs.replace(base.preemption, enable=enable),
        gang_timeout_seconds=document.default_timeout or base.gang_timeout_seconds,
        gang_match_policy=document.default_match_policy or base.gang_match_policy,
    )


def _load(base: LoadPolicy, document: LoadAwareArgs) -> LoadPolicy:
    aggregated = document.aggregated
    changes = {
        "expiry_seconds": document.node_metric_expiration_seconds,
        "filter_expired": document.filter_expired_node_metrics,
        "place_when_expired": document.enable_schedule_when_node_metrics_expired,
        "cpu_weight": (document.resource_weights or {}).get(CPU),
        "memory_weight": (document.resource_weights or {}).get(MEMORY),
        "dominant_weight": document.dominant_resource_weight,
        "limits": _limits(document.usage_thresholds),
        "prod_limits": _limits(document.prod_usage_thresholds),
        "score_prod_usage": document.score_according_prod_usage,
        "prod_includes_system": document.prod_usage_include_sys,
        "cpu_factor_pct": (document.estimated_scaling_factors or {}).get(CPU),
        "memory_factor_pct": (document.estimated_scaling_factors or {}).get(MEMORY),
        "custom_estimates": document.allow_customize_estimation,
        "after_scheduled_seconds": document.estimated_seconds_after_pod_scheduled,
        "after_initialized_seconds": document.estimated_seconds_after_initialized,
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


def _split(base: SchedulerProfile, document: Mapping[str, ProfileArgs]) -> Iterator[SchedulerProfile]:
    """As many as the document tells apart."""
    own = [name for name in base.names if name in document]
    for name in own[1:]:
        yield SchedulerProfile((name,), _score(base.score, document[name]))
    names = tuple(name for name in base.names if name not in own[1:])
    yield msgspec.structs.replace(base, names=names, score=_score(base.score, document[own[0]]) if own else base.score)


def _score(base: ScorePolicy, document: ProfileArgs) -> ScorePolicy:
    changes: dict[str, object] = {_WEIGHT_OF[name]: weight for name, weight in document.weights}
    changes |= _fit(document.fit) if document.fit else {}
    if document.balanced and document.balanced.resources:
        changes["balanced"] = tuple(each.name for each in document.balanced.resources)
    if document.inter_pod_affinity and document.inter_pod_affinity.hard_pod_affinity_weight is not None:
        changes["required_affinity_weight"] = document.inter_pod_affinity.hard_pod_affinity_weight
    return msgspec.structs.replace(base, **changes)


def _fit(document: FitArgs) -> dict[str, object]:
    strategy = document.scoring_strategy
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
