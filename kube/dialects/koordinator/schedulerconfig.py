"""Koordinator's ConfigMap `koord-scheduler-config`: what a KubeSchedulerConfiguration says of how this scheduler works.

Source: Koordinator config/manager/scheduler-config.yaml and pkg/scheduler/apis/config/v1/types.go, kube-scheduler's
staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go. A field that is not there leaves the scheduler's own
setting in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from kube.dialects.documents.document import GoDuration, check_depth, checked
from kube.dialects.documents.spelling import unknown_fields
from kube.yamldocuments import InvalidYaml, yaml_documents
from model.fault import ConfigurationFault
from model.loadlimits import StatisticKind
from model.scoring import ScorePlugin, ScoringStrategyType
from model.workload import MatchPolicy

NAME = "koord-scheduler-config"
_WHERE = f"ConfigMap {NAME}"
_KIND = "KubeSchedulerConfiguration"
_Weight = Annotated[int, Meta(ge=0, le=100)]
_Percents = dict[str, Annotated[int, Meta(ge=0, le=100)]]
_Factors = dict[str, Annotated[int, Meta(ge=1, le=1000)]]
_Seconds = Annotated[int, Meta(ge=0, le=86_400)]


class _Typed(msgspec.Struct, frozen=True, rename="camel"):
    """Every plugin's arguments say what they are."""

    api_version: str = ""
    kind: str = ""


class CoschedulingArgs(_Typed, frozen=True, rename="camel"):
    """What the Coscheduling plugin is told; None where the document is silent, as everywhere here."""

    enable_preemption: bool | None = None
    default_timeout: GoDuration | None = None
    default_match_policy: MatchPolicy | None = None
    aware_network_topology: bool | None = None


class AggregatedArgs(msgspec.Struct, frozen=True, rename="camel"):
    """LoadAwareSchedulingAggregatedArgs."""

    usage_thresholds: _Percents | None = None
    usage_aggregation_type: StatisticKind | None = None
    usage_aggregated_duration: GoDuration | None = None
    score_aggregation_type: StatisticKind | None = None
    score_aggregated_duration: GoDuration | None = None


class LoadAwareArgs(_Typed, frozen=True, rename="camel"):
    """LoadAwareSchedulingArgs; amounts are percent, by resource name."""

    filter_expired_node_metrics: bool | None = None
    node_metric_expiration_seconds: _Seconds | None = None
    enable_schedule_when_node_metrics_expired: bool | None = None
    resource_weights: dict[str, _Weight] | None = None
    dominant_resource_weight: _Weight | None = None
    usage_thresholds: _Percents | None = None
    prod_usage_thresholds: _Percents | None = None
    prod_usage_include_sys: bool | None = None
    score_according_prod_usage: bool | None = None
    estimator: str | None = None
    estimated_scaling_factors: _Factors | None = None
    estimated_seconds_after_pod_scheduled: _Seconds | None = None
    estimated_seconds_after_initialized: _Seconds | None = None
    allow_customize_estimation: bool | None = None
    aggregated: AggregatedArgs | None = None


class ResourceWeight(msgspec.Struct, frozen=True):
    """A resource that a strategy counts; no weight is a weight of 1."""

    name: Annotated[str, Meta(min_length=1)]
    weight: _Weight = 1


class UtilizationShapePoint(msgspec.Struct, frozen=True):
    """A point of RequestedToCapacityRatio's line."""

    utilization: Annotated[int, Meta(ge=0, le=100)] = 0
    score: Annotated[int, Meta(ge=0, le=10)] = 0


class _Ratio(msgspec.Struct, frozen=True):
    shape: list[UtilizationShapePoint] | None = None


class ScoringStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """`type` is one of kube-scheduler's three strategies."""

    type: ScoringStrategyType | None = None
    resources: list[ResourceWeight] | None = None
    requested_to_capacity_ratio: _Ratio | None = None

    @property
    def shape(self) -> tuple[UtilizationShapePoint, ...]:
        """Empty where there is none."""
        return tuple(self.requested_to_capacity_ratio.shape or ()) if self.requested_to_capacity_ratio else ()


class FitArgs(_Typed, frozen=True, rename="camel"):
    """NodeResourcesFitArgs."""

    scoring_strategy: ScoringStrategy | None = None


class BalancedArgs(_Typed, frozen=True, rename="camel"):
    """NodeResourcesBalancedAllocationArgs."""

    resources: list[ResourceWeight] | None = None


class InterPodAffinityArgs(_Typed, frozen=True, rename="camel"):
    """InterPodAffinityArgs."""

    hard_pod_affinity_weight: _Weight | None = None


class ProfileArgs(msgspec.Struct, frozen=True):
    """One profile; None where it has no arguments for a plugin.

    `weights` are those of score plugins, 0 of one that is switched off.
    """

    scheduler_name: str = ""
    coscheduling: CoschedulingArgs | None = None
    load_aware: LoadAwareArgs | None = None
    fit: FitArgs | None = None
    balanced: BalancedArgs | None = None
    inter_pod_affinity: InterPodAffinityArgs | None = None
    weights: tuple[tuple[ScorePlugin, int], ...] = ()


class SchedulerConfig(msgspec.Struct, frozen=True):
    """All profiles in their order; `unserved` has a sentence for each part that nothing acts on, but for arguments of
    plugins: of those coverage.asking_scheduler tells.
    """

    profiles: tuple[ProfileArgs, ...] = ()
    unserved: tuple[str, ...] = ()


class _Plugin(msgspec.Struct, frozen=True):
    name: str = ""
    args: dict[str, Any] | None = None


class _Enabled(msgspec.Struct, frozen=True):
    name: str = ""
    weight: Annotated[int, Meta(ge=0)] | None = None


class _Point(msgspec.Struct, frozen=True):
    enabled: list[_Enabled] | None = None
    disabled: list[_Enabled] | None = None


class _Profile(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: str | None = None
    plugin_config: list[_Plugin] | None = None
    plugins: dict[str, _Point | None] | None = None


class _Configuration(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str | None = None
    kind: str = ""
    profiles: list[_Profile] | None = None


ARGUMENTS: Mapping[str, tuple[str, type[Any]]] = {
    "Coscheduling": ("coscheduling", CoschedulingArgs),
    ScorePlugin.LOAD: ("load_aware", LoadAwareArgs),
    ScorePlugin.FIT: ("fit", FitArgs),
    ScorePlugin.BALANCE: ("balanced", BalancedArgs),
    ScorePlugin.POD_AFFINITY: ("inter_pod_affinity", InterPodAffinityArgs),
}
"""Plugins whose arguments are acted on: the field of ProfileArgs, and what is read."""
_SCORES = frozenset(ScorePlugin)
_ALWAYS = frozenset(
    {*ARGUMENTS, *_SCORES, "PrioritySort", "DefaultPreemption", "DefaultBinder", "DefaultPreBind", "SchedulingGates"}
    | {"NodeName", "NodePorts", "NodeUnschedulable", "VolumeZone", "VolumeBinding"}
)
"""Plugins whose work is done here, whether a profile lists them or not."""


def read(data: Mapping[str, str], where: str = _WHERE) -> SchedulerConfig:
    """The ConfigMap's documents, keys in order of their names; those of other kinds are skipped.

    Raises ConfigurationFault naming the key and the field.
    """
    profiles: list[ProfileArgs] = []
    unserved: list[str] = []
    for key in sorted(data):
        place = f"{where}: data[{key!r}]"
        for document in _documents(data[key], place):
            found = checked(document, _Configuration, place)
            unserved += _not_served(document, found, place)
            profiles += (_profile(each, f"{place}.profiles[{n}]") for n, each in enumerate(found.profiles or ()))
    return SchedulerConfig(tuple(profiles), tuple(unserved))


def arguments(data: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every plugin that any profile gives arguments, with these. Raises ConfigurationFault, as `read` does."""
    for key in sorted(data):
        where = f"{_WHERE}: data[{key!r}]"
        for document in _documents(data[key], where):
            for profile in checked(document, _Configuration, where).profiles or ():
                yield from ((plugin.name, plugin.args or {}) for plugin in profile.plugin_config or ())


def _documents(text: str, where: str) -> Iterator[dict[str, Any]]:
    try:
        found = yaml_documents(text)
    except InvalidYaml as error:
        raise ConfigurationFault(where, f"is not YAML: {error}", "write a KubeSchedulerConfiguration") from error
    for document in found:
        if isinstance(document, dict) and document.get("kind") == _KIND:
            check_depth(document, where)
            yield document


def _profile(told: _Profile, where: str) -> ProfileArgs:
    found: dict[str, Any] = {}
    for index, plugin in enumerate(told.plugin_config or ()):
        if plugin.name in ARGUMENTS:
            field, kind = ARGUMENTS[plugin.name]
            args = checked(plugin.args or {}, kind, f"{where}.pluginConfig[{index}].args")
            found.setdefault(field, args)
            if isinstance(args, FitArgs) and args.scoring_strategy:
                _check_shape(args.scoring_strategy.shape, f"{where}.pluginConfig[{index}].args.scoringStrategy")
    return ProfileArgs(told.scheduler_name or "", weights=tuple(_weights(told, where).items()), **found)


def _check_shape(shape: tuple[UtilizationShapePoint, ...], where: str) -> None:
    points = [point.utilization for point in shape]
    if points != sorted(set(points)):
        raise ConfigurationFault(
            f"{where}.requestedToCapacityRatio.shape", "does not rise", "order its points by rising utilization"
        )


def _weights(told: _Profile, where: str) -> dict[ScorePlugin, int]:
    """As kube-scheduler merges them: what is switched off first, then what is switched on; no weight is 1."""
    weights: dict[ScorePlugin, int] = {}
    for name in ("multiPoint", "score"):
        point = (told.plugins or {}).get(name) or _Point()
        off = {each.name for each in point.disabled or ()}
        weights |= {plugin: 0 for plugin in ScorePlugin if plugin in off or "*" in off}
        for index, each in enumerate(point.enabled or ()):
            if each.name in _SCORES:
                weight = each.weight or 1
                if weight > 100:
                    field = f"{where}.plugins.{name}.enabled[{index}].weight"
                    raise ConfigurationFault(field, f"is {weight}", "write 1 to 100")
                weights[ScorePlugin(each.name)] = weight
    return weights


def _not_served(document: Mapping[str, Any], told: _Configuration, where: str) -> Iterator[str]:
    others = sorted(set(document) - {"apiVersion", "kind", "profiles"})
    if others:
        yield f"{where}: nothing acts on {', '.join(others)}: this scheduler's own settings say it"
    for number, profile in enumerate(told.profiles or ()):
        yield from _not_served_of(profile, f"{where}.profiles[{number}]")


def _not_served_of(profile: _Profile, where: str) -> Iterator[str]:
    named = _others(profile)
    if named:
        yield f"{where}: nothing acts on plugin{'s' if len(named) > 1 else ''} {', '.join(named)}"
    for index, plugin in enumerate(profile.plugin_config or ()):
        if plugin.name in ARGUMENTS:
            field = f"{where}.pluginConfig[{index}].args"
            unknown = unknown_fields(plugin.args or {}, (ARGUMENTS[plugin.name][1],), field)
            yield from (told for told in unknown if "did you mean" in told)
            yield from _not_served_resources(plugin.args or {}, field)
    for point, found in sorted((profile.plugins or {}).items()):
        off = sorted(each.name for each in (found.disabled if found else None) or () if each.name in _ALWAYS)
        off = [name for name in off if point not in ("score", "multiPoint") or name not in _SCORES]
        on = {each.name for each in (found.enabled if found else None) or ()}
        if kept := [name for name in off if name not in on]:
            yield f"{where}.plugins.{point}.disabled: {', '.join(kept)} cannot be switched off there"


def _others(profile: _Profile) -> list[str]:
    """Plugins that are switched on and that nobody has heard of here."""
    points = [point for point in (profile.plugins or {}).values() if point]
    enabled = {each.name for point in points for each in point.enabled or () if each.name}
    return sorted(enabled - _ALWAYS)


def _not_served_resources(args: Mapping[str, Any], where: str) -> Iterator[str]:
    """Resources whose amounts change nothing here."""
    for field in ("resourceWeights", "usageThresholds", "prodUsageThresholds", "estimatedScalingFactors"):
        yield from _other_resources(args.get(field), f"{where}.{field}")
    aggregated = args.get("aggregated")
    if isinstance(aggregated, dict):
        yield from _other_resources(aggregated.get("usageThresholds"), f"{where}.aggregated.usageThresholds")


def _other_resources(amounts: object, where: str) -> Iterator[str]:
    names: Iterable[str] = sorted(set(amounts) - {"cpu", "memory"}) if isinstance(amounts, dict) else ()
    for name in names:
        yield f"{where}: nothing acts on {name!r}, but on cpu and memory"
