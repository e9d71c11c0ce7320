"""The scheduler's settings under koord-scheduler-config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kube.dialects.koordinator import schedulerconfig
from model.loadlimits import Statistic, StatisticKind, UsageLimits
from model.scoring import ScoringStrategyType
from model.workload import MatchPolicy
from scheduler.core.scores.policy import PLAIN_SCORE, PROFILES, SchedulerProfile, ScoredResource, ShapePoint
from scheduler.settings import SchedulerSettings
from scheduler.settings_overlay import overlaid


def config(*profiles: dict[str, Any]) -> schedulerconfig.SchedulerConfig:
    body = {"kind": "KubeSchedulerConfiguration", "profiles": list(profiles)}
    return schedulerconfig.read({"k": msgspec.json.encode(body).decode()})


def koord(**plugins: dict[str, Any]) -> dict[str, Any]:
    told = [{"name": name, "args": args} for name, args in plugins.items()]
    return {"schedulerName": "koord-scheduler", "pluginConfig": told}


def in_force(*profiles: dict[str, Any], base: SchedulerSettings | None = None) -> SchedulerSettings:
    return overlaid(base or SchedulerSettings(), config(*profiles)).settings


LOAD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "expiry": ({"nodeMetricExpirationSeconds": 180}, {"expiry_seconds": 180}),
    "a filter": ({"filterExpiredNodeMetrics": True}, {"filter_expired": True}),
    "place": ({"enableScheduleWhenNodeMetricsExpired": True}, {"place_when_expired": True}),
    "weights": ({"resourceWeights": {"cpu": 2, "memory": 0}}, {"cpu_weight": 2, "memory_weight": 0}),
    "one weight": ({"resourceWeights": {"cpu": 2}}, {"cpu_weight": 2}),
    "dominant": ({"dominantResourceWeight": 4}, {"dominant_weight": 4}),
    "thresholds": ({"usageThresholds": {"cpu": 65, "memory": 95}}, {"limits": UsageLimits(65, 95)}),
    "no threshold": ({"usageThresholds": {"cpu": 0}}, {}),
    "of prod": ({"prodUsageThresholds": {"cpu": 55}}, {"prod_limits": UsageLimits(55, 0)}),
    "prod and system": ({"prodUsageIncludeSys": True}, {"prod_includes_system": True}),
    "by prod use": ({"scoreAccordingProdUsage": True}, {"score_prod_usage": True}),
    "factors": (
        {"estimatedScalingFactors": {"cpu": 80, "memory": 60}},
        {"cpu_factor_pct": 80, "memory_factor_pct": 60},
    ),
    "times": (
        {"estimatedSecondsAfterPodScheduled": 9, "estimatedSecondsAfterInitialized": 8},
        {"after_scheduled_seconds": 9, "after_initialized_seconds": 8},
    ),
    "of pods": ({"allowCustomizeEstimation": True}, {"custom_estimates": True}),
    "a percentile": (
        {
            "aggregated": {
                "usageThresholds": {"cpu": 65},
                "usageAggregationType": "p95",
                "usageAggregatedDuration": "5m",
                "scoreAggregationType": "p50",
            }
        },
        {
            "aggregated_limits": UsageLimits(65, 0),
            "limit_statistic": Statistic(StatisticKind.P95, 300.0),
            "score_statistic": Statistic(StatisticKind.P50),
        },
    ),
}


@pytest.mark.parametrize(("args", "expected"), LOAD.values(), ids=LOAD.keys())
def test_measured_load(args: dict[str, Any], expected: dict[str, Any]) -> None:
    """Each argument is one setting; what is not said stays."""
    base = SchedulerSettings()
    assert in_force(koord(LoadAwareScheduling=args)) == msgspec.structs.replace(
        base, load=msgspec.structs.replace(base.load, **expected)
    )


def test_gangs() -> None:
    """Timeout, match policy and preemption's switch."""
    args = {"enablePreemption": False, "defaultTimeout": "30s", "defaultMatchPolicy": "only-waiting"}
    found = overlaid(SchedulerSettings(), config(koord(Coscheduling=args)))
    told = found.settings
    assert (told.preemption.enable, told.gang_timeout_seconds, told.gang_match_policy, found.switched) == (
        False,
        30.0,
        MatchPolicy.ONLY_WAITING,
        True,
    )
    assert not overlaid(SchedulerSettings(), config(koord(Coscheduling={"defaultTimeout": "1m"}))).switched


SCORES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "packing": (
        koord(NodeResourcesFit={"scoringStrategy": {"type": "MostAllocated"}}),
        {"strategy": ScoringStrategyType.BINPACK},
    ),
    "resources": (
        koord(NodeResourcesFit={"scoringStrategy": {"resources": [{"name": "cpu", "weight": 3}, {"name": "memory"}]}}),
        {"resources": (ScoredResource("cpu", 3), ScoredResource("memory", 1))},
    ),
    "a shape": (
        koord(
            NodeResourcesFit={
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100}]},
                }
            }
        ),
        {"strategy": ScoringStrategyType.RATIO, "shape": (ShapePoint(0, 10), ShapePoint(100, 0))},
    ),
    "even use": (koord(NodeResourcesBalancedAllocation={"resources": [{"name": "cpu"}]}), {"balanced": ("cpu",)}),
    "residents' affinity": (koord(InterPodAffinity={"hardPodAffinityWeight": 7}), {"required_affinity_weight": 7}),
    "weights": (
        koord()
        | {
            "plugins": {
                "score": {
                    "disabled": [{"name": "NodeAffinity"}],
                    "enabled": [
                        {"name": name, "weight": weight}
                        for weight, name in enumerate(
                            [
                                "NodeResourcesFit",
                                "NodeResourcesBalancedAllocation",
                                "LoadAwareScheduling",
                                "TaintToleration",
                                "PodTopologySpread",
                                "InterPodAffinity",
                            ],
                            start=11,
                        )
                    ],
                }
            }
        },
        {
            "fit_weight": 11,
            "balance_weight": 12,
            "load_weight": 13,
            "taint_weight": 14,
            "spread_weight": 15,
            "pod_affinity_weight": 16,
            "affinity_weight": 0,
        },
    ),
}


@pytest.mark.parametrize(("profile", "expected"), SCORES.values(), ids=SCORES.keys())
def test_scores(profile: dict[str, Any], expected: dict[str, Any]) -> None:
    """For all names that share the profile, and a profile without a name is for the first of them."""
    score = msgspec.structs.replace(PROFILES[0].score, **expected)
    assert in_force(profile).profiles == (SchedulerProfile(PROFILES[0].names, score),)
    assert in_force(profile | {"schedulerName": ""}).profiles == (SchedulerProfile(PROFILES[0].names, score),)


def test_two_names_told_apart() -> None:
    """Who has a profile of their own goes by it; the others stay together."""
    packing = {"scoringStrategy": {"type": "MostAllocated"}}
    found = in_force(koord(), koord(NodeResourcesFit=packing) | {"schedulerName": "volcano"}).profiles
    assert [(each.names, each.score.strategy) for each in found] == [
        (("volcano",), ScoringStrategyType.BINPACK),
        (("koord-scheduler", "sublet-scheduler"), ScoringStrategyType.SPREAD),
    ]


def test_a_name_without_a_profile_gets_one() -> None:
    """scheduler_names alone."""
    base = SchedulerSettings(scheduler_names=("mine",), profiles=())
    told = koord(NodeResourcesFit={"scoringStrategy": {"type": "MostAllocated"}}) | {"schedulerName": "mine"}
    (found,) = in_force(told, base=base).profiles
    assert (found.names, found.score.strategy) == (("mine",), ScoringStrategyType.BINPACK)


def test_profiles_of_others() -> None:
    """Neither an unknown name nor kube-scheduler's is taken over by a document; it is said."""
    stand_in = SchedulerProfile(("default-scheduler",), PLAIN_SCORE, plain=True)
    base = SchedulerSettings(profiles=(*PROFILES, stand_in))
    packing = {"scoringStrategy": {"type": "MostAllocated"}}
    for name in ("default-scheduler", "packing-scheduler"):
        told = koord(NodeResourcesFit=packing, Coscheduling={"enablePreemption": False}) | {"schedulerName": name}
        found = overlaid(base, config(told))
        assert found.settings == base and not found.switched
        (sentence,) = found.unserved
        assert (
            f"profile {name}: nothing acts on it" in sentence and "default-scheduler" not in sentence.partition(":")[2]
        )


def test_what_is_shipped_changes_nothing() -> None:
    """deploy/koordinator: its values are those that hold without it, and nothing of it is idle."""
    shipped = Path(__file__).parents[2] / "deploy" / "koordinator" / "scheduler-config.yaml"
    told = schedulerconfig.read(yaml.safe_load(shipped.read_text())["data"])
    found = overlaid(SchedulerSettings(), told)
    assert (found.settings, found.switched, found.unserved, told.unserved) == (SchedulerSettings(), True, (), ())


def test_kube_schedulers_name_is_refused() -> None:
    """But for a profile that does what kube-scheduler does."""
    for wrong in ({"scheduler_names": ["default-scheduler"]}, {"profiles": [{"names": ["default-scheduler"]}]}):
        with pytest.raises(msgspec.ValidationError, match="default-scheduler is kube-scheduler's"):
            msgspec.convert(wrong, SchedulerSettings)
    plain = {"profiles": [{"names": ["default-scheduler"], "plain": True}], "scheduler_names": ["default-scheduler"]}
    assert msgspec.convert(plain, SchedulerSettings).plain == {"default-scheduler"}


def test_a_name_given_twice() -> None:
    """kube-scheduler refuses that; here the first counts, and it is said."""
    found = overlaid(SchedulerSettings(), config(koord(Coscheduling={"enablePreemption": False}), koord()))
    assert not found.settings.preemption.enable
    assert found.unserved == ("profile koord-scheduler: is given twice, and the first one counts",)
