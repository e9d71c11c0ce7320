"""Settings of scores: how a profile weighs what, as plugins and weights of a KubeSchedulerConfiguration profile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY
from model.scoring import ScoringStrategyType

_Weight = Annotated[int, Meta(ge=0, le=100)]


class ScoredResource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    """A resource the strategy counts; beyond cpu and memory only for pods that ask for it."""

    name: Annotated[str, Meta(description="Resource name, such as cpu or nvidia.com/gpu.")]
    weight: Annotated[int, Meta(ge=1, le=100, description="Its weight among the resources.")] = 1


class ShapePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    """A point of RequestedToCapacityRatio's line."""

    utilization_pct: Annotated[int, Meta(ge=0, le=100, description="Percent of a resource in use.")]
    score: Annotated[int, Meta(ge=0, le=10, description="Score there, 0 to 10.")]


class ScorePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    """Weights are kube-scheduler's defaults, resources Koordinator's shipped profile; weight 0 switches a score off."""

    strategy: Annotated[
        ScoringStrategyType,
        Meta(
            description="LeastAllocated spreads, MostAllocated packs, RequestedToCapacityRatio follows shape. For lone "
            "pods; a gang is packed onto few nodes whatever stands here."
        ),
    ] = ScoringStrategyType.SPREAD
    shape: Annotated[
        tuple[ShapePoint, ...],
        Meta(min_length=1, description="Points by rising utilisation; without others, packing as MostAllocated."),
    ] = (ShapePoint(0, 0), ShapePoint(100, 10))
    resources: Annotated[
        tuple[ScoredResource, ...], Meta(description="What the strategy counts, as Koordinator's shipped profile.")
    ] = (ScoredResource(CPU), ScoredResource(MEMORY), ScoredResource(BATCH_CPU), ScoredResource(BATCH_MEMORY))
    balanced: Annotated[
        tuple[str, ...], Meta(description="Resources that are to be used evenly; not scored for pods asking for none.")
    ] = (CPU, MEMORY)
    fit_weight: Annotated[_Weight, Meta(description="Weight of the strategy (NodeResourcesFit).")] = 1
    balance_weight: Annotated[_Weight, Meta(description="Weight of even use (NodeResourcesBalancedAllocation).")] = 1
    load_weight: Annotated[_Weight, Meta(description="Weight of measured use (Koordinator's LoadAwareScheduling).")] = 1
    affinity_weight: Annotated[_Weight, Meta(description="Weight of preferred node affinity (NodeAffinity).")] = 2
    taint_weight: Annotated[_Weight, Meta(description="Weight of PreferNoSchedule taints (TaintToleration).")] = 3
    spread_weight: Annotated[_Weight, Meta(description="Weight of ScheduleAnyway spreading (PodTopologySpread).")] = 2
    pod_affinity_weight: Annotated[
        _Weight, Meta(description="Weight of preferred pod affinity (InterPodAffinity).")
    ] = 2
    required_affinity_weight: Annotated[
        _Weight,
        Meta(description="What a resident's required affinity to the pod counts in that (hardPodAffinityWeight)."),
    ] = 1

    def __post_init__(self) -> None:
        """Refuse a shape that does not rise."""
        points = [point.utilization_pct for point in self.shape]
        if points != sorted(set(points)):
            raise ValueError("shape: utilization_pct must rise from point to point")


KUBE_SCHEDULER = "default-scheduler"
"""The name of pods that name no scheduler: kube-scheduler's."""


class SchedulerProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    """How pods of these scheduler names are scored."""

    names: Annotated[tuple[str, ...], Meta(min_length=1, description="spec.schedulerName values.")]
    score: ScorePolicy = ScorePolicy()
    plain: Annotated[
        bool,
        Meta(
            description="Place these pods as kube-scheduler does, one by one: gangs and measured use mean nothing. For "
            "the embedded cluster, which has no kube-scheduler; only such a profile may have the name "
            "default-scheduler, and none in a cluster that runs kube-scheduler."
        ),
    ] = False

    def __post_init__(self) -> None:
        """Refuse kube-scheduler's name for anything else than what it does."""
        if KUBE_SCHEDULER in self.names and not self.plain:
            raise ValueError(f"names: {KUBE_SCHEDULER} is kube-scheduler's; name another, or set plain: true")


PLAIN_SCORE = ScorePolicy(resources=(ScoredResource(CPU), ScoredResource(MEMORY)), load_weight=0)
"""kube-scheduler's own."""

PROFILES = (SchedulerProfile(("koord-scheduler", "sublet-scheduler", "volcano")),)
"""Koordinator's name, ours, and Volcano's, whose jobs are so taken over unchanged."""


def policy_for(profiles: Iterable[SchedulerProfile], scheduler_name: str) -> ScorePolicy:
    """The policy of the first profile with that name; the default one where none has it."""
    return next((profile.score for profile in profiles if scheduler_name in profile.names), ScorePolicy())


def served(profiles: Iterable[SchedulerProfile]) -> tuple[str, ...]:
    """All scheduler names of the profiles, each once, in their order."""
    return tuple(dict.fromkeys(name for profile in profiles for name in profile.names))
