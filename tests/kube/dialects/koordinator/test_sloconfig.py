"""The ConfigMap slo-controller-config: what it sets, for which node, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kube.dialects.documents.document import GoDuration
from kube.dialects.koordinator import sloconfig
from kube.dialects.koordinator.nodeslo import (
    EvictionFields,
    EvictionPolicy,
    SuppressFields,
    SuppressPolicyText,
    SwitchFields,
)
from kube.dialects.koordinator.sloconfig import (
    AggregatePolicy,
    CollectPolicy,
    ColocationFields,
    ModelRatios,
    NormalizationFields,
    ReportPolicy,
)
from kube.objects import ConfigMap, Metadata
from model.fault import ConfigurationFault
from model.strategy import (
    CalculatePolicy,
    ColocationStrategy,
    CpuLimitPolicy,
    EvictionStrategy,
    MemoryCollectPolicy,
    MidMode,
    NormalizationStrategy,
    RatioModel,
    SuppressPolicy,
    SuppressStrategy,
)

COLOCATION = "colocation-config"
NORMALIZATION = "cpu-normalization-config"
THRESHOLD = "resource-threshold-config"
HOST = "host-application-config"


def config_map(**documents: Any) -> ConfigMap:
    """Keys with `_` for `-`; a text stands as it is, anything else as JSON."""
    texts = {
        key.replace("_", "-"): value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for key, value in documents.items()
    }
    return ConfigMap(Metadata(name="slo-controller-config", namespace="koordinator-system"), texts)


def windows(*seconds: float) -> AggregatePolicy:
    return AggregatePolicy([GoDuration(s) for s in seconds])


# The defaults of the Koordinator chart, and the example of its API documentation.
CHART = {
    "enable": True,
    "metricAggregateDurationSeconds": 300,
    "metricReportIntervalSeconds": 60,
    "metricAggregatePolicy": {"durations": ["5m", "10m", "15m"]},
    "metricMemoryCollectPolicy": "usageWithoutPageCache",
    "cpuReclaimThresholdPercent": 60,
    "memoryReclaimThresholdPercent": 65,
    "memoryCalculatePolicy": "usage",
    "degradeTimeMinutes": 15,
    "updateTimeThresholdSeconds": 300,
    "resourceDiffThreshold": 0.1,
    "extensions": {"anything": 1},
    "nodeConfigs": [
        {
            "name": "alios",
            "nodeSelector": {"matchLabels": {"kubernetes.io/kernel": "alios"}},
            "updateTimeThresholdSeconds": 360,
            "resourceDiffThreshold": 0.2,
        }
    ],
}


def test_the_charts_document() -> None:
    """Cluster values, and what differs on the nodes of an entry."""
    layers = sloconfig.colocation_layers(config_map(colocation_config=CHART))
    assert layers is not None
    (cluster,) = layers.of({"kubernetes.io/kernel": "other"})
    assert cluster == ColocationFields(
        enable=True,
        aggregate_seconds=300,
        report_seconds=60,
        aggregate_policy=AggregatePolicy([GoDuration(300), GoDuration(600), GoDuration(900)]),
        memory_collect_policy=MemoryCollectPolicy.WITHOUT_PAGE_CACHE,
        cpu_reclaim_threshold_pct=60,
        memory_reclaim_threshold_pct=65,
        memory_policy=CalculatePolicy.USAGE,
        degrade_minutes=15,
        update_interval_seconds=300,
        resource_diff_ratio=0.1,
    )
    assert layers.of({"kubernetes.io/kernel": "alios"}) == (
        cluster,
        ColocationFields(update_interval_seconds=360, resource_diff_ratio=0.2),
    )


READERS: dict[str, Callable[[ConfigMap | None], object]] = {
    COLOCATION: sloconfig.colocation_layers,
    NORMALIZATION: sloconfig.normalization_layers,
    THRESHOLD: sloconfig.suppress_layers,
    HOST: sloconfig.host_application_layers,
}


@pytest.mark.parametrize("key", READERS)
@pytest.mark.parametrize("source", [None, ConfigMap(), config_map(other="{"), "blank"])
def test_no_document(key: str, source: ConfigMap | str | None) -> None:
    """No ConfigMap, no such key or an empty text: nothing is said, whatever other keys hold."""
    present = ConfigMap(data={key: " \n"}) if isinstance(source, str) else source
    assert READERS[key](present) is None


def entry(pool: str | None, **fields: Any) -> dict[str, Any]:
    return {**({"nodeSelector": {"matchLabels": {"pool": pool}}} if pool else {}), **fields}


def test_the_first_matching_entry_counts() -> None:
    """In the order they are written; an entry without a selector matches nothing, an empty selector everything."""
    entries = [
        entry(None, enable=True),
        entry("a", cpuReclaimThresholdPercent=1),
        entry("a", cpuReclaimThresholdPercent=2),
        {"nodeSelector": {}, "cpuReclaimThresholdPercent": 3},
    ]
    layers = sloconfig.colocation_layers(config_map(colocation_config={"nodeConfigs": entries}))
    assert layers is not None
    assert layers.of({"pool": "a"})[1].cpu_reclaim_threshold_pct == 1
    assert layers.of({})[1].cpu_reclaim_threshold_pct == 3


def test_names_in_any_case() -> None:
    """As Go reads them: of the cluster, of the entries, and of what selects them; labels are not names of fields."""
    colocation = {
        "Enable": True,
        "CPUReclaimThresholdPercent": 30,
        "METRICAGGREGATEPOLICY": {"Durations": ["5m"]},
        "NodeConfigs": [
            {"NodeSelector": {"MatchLabels": {"Pool": "a"}}, "cpureclaimthresholdpercent": 40},
        ],
    }
    layers = sloconfig.colocation_layers(config_map(colocation_config=colocation))
    assert layers is not None
    assert layers.of({"pool": "a"}) == (ColocationFields(True, None, None, windows(300), None, 30),)
    assert layers.of({"Pool": "a"})[1].cpu_reclaim_threshold_pct == 40
    threshold = {"ClusterStrategy": {"CPUSuppressThresholdPercent": 7}, "nodestrategies": [entry("a", Enable=True)]}
    found = sloconfig.suppress_layers(config_map(resource_threshold_config=threshold))
    assert found is not None and found.of({"pool": "a"}) == (SuppressFields(7), SuppressFields())
    switches = sloconfig.entry_switches(config_map(resource_threshold_config=threshold))
    assert switches is not None and switches.of({"pool": "a"})[1] == SwitchFields(True)
    ratios = {"RatioModel": {"X": {"BaseRatio": 2}}}
    normalization = sloconfig.normalization_layers(config_map(cpu_normalization_config=ratios))
    assert normalization is not None and normalization.cluster.ratio_model == {"X": ModelRatios(2.0)}
    host = sloconfig.host_application_layers(config_map(host_application_config={"Applications": [{"Name": "a"}]}))
    assert host is not None and [one.name for one in host.cluster.applications or ()] == ["a"]


def test_thresholds() -> None:
    """clusterStrategy and nodeStrategies; each kind of field is read for itself."""
    document = {
        "clusterStrategy": {"enable": False, "cpuSuppressThresholdPercent": 65, "memoryEvictThresholdPercent": 70},
        "nodeStrategies": [entry("a", cpuSuppressPolicy="cfsQuota", cpuEvictBEUsageThresholdPercent=80)],
    }
    layers = sloconfig.suppress_layers(config_map(resource_threshold_config=document))
    assert layers is not None
    assert layers.of({}) == (SuppressFields(65),)
    assert layers.of({"pool": "a"})[1] == SuppressFields(policy=SuppressPolicyText.CFS_QUOTA)
    evictions = sloconfig.eviction_layers(config_map(resource_threshold_config=document))
    assert evictions is not None
    assert evictions.of({"pool": "a"}) == (EvictionFields(70), EvictionFields(cpu_be_usage_threshold_pct=80))
    assert sloconfig.cluster_switch(config_map(resource_threshold_config=document)) == SwitchFields(False)
    switches = sloconfig.entry_switches(config_map(resource_threshold_config=document))
    assert switches is not None and switches.of({"pool": "a"}) == (SwitchFields(), SwitchFields())


def test_a_wrong_eviction_holds_up_no_suppression() -> None:
    """Nor the other way round: both stand in one text and are read apart."""
    wrong = config_map(resource_threshold_config={"clusterStrategy": {"memoryEvictThresholdPercent": 101}})
    with pytest.raises(ConfigurationFault, match=r"clusterStrategy\.memoryEvictThresholdPercent: is 101"):
        sloconfig.eviction_layers(wrong)
    assert sloconfig.suppress_layers(wrong) is not None
    other = config_map(resource_threshold_config={"clusterStrategy": {"cpuSuppressThresholdPercent": 101}})
    assert sloconfig.eviction_layers(other) is not None


NO_OFF_IS_HIDDEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # what else stands in the cluster's values, and the whole of the entries
    "suppression": ({"cpuSuppressThresholdPercent": 101}, {}),
    "evictions": ({"cpuEvictThresholdPercent": 101}, {}),
    "an entry's field": ({}, {"nodeStrategies": [entry("a", memoryEvictThresholdPercent=101)]}),
    "an entry's switch": ({}, {"nodeStrategies": [entry("a", enable="no")]}),
    "an entry's selector": ({}, {"nodeStrategies": [{"nodeSelector": 3}]}),
    "entries that are none": ({}, {"nodeStrategies": 3}),
}


@pytest.mark.parametrize(("values", "entries"), NO_OFF_IS_HIDDEN.values(), ids=NO_OFF_IS_HIDDEN.keys())
def test_no_fault_hides_the_clusters_switch(values: dict[str, Any], entries: dict[str, Any]) -> None:
    """It is read by itself."""
    document = {"clusterStrategy": {"enable": False, **values}, **entries}
    assert sloconfig.cluster_switch(config_map(resource_threshold_config=document)) == SwitchFields(False)


SWITCH_FAULTS: dict[str, tuple[Callable[[ConfigMap | None], object], dict[str, Any], str]] = {
    "the cluster's": (sloconfig.cluster_switch, {"clusterStrategy": {"enable": 1}}, ".clusterStrategy.enable: is 1"),
    "an entry's": (
        sloconfig.entry_switches,
        {"nodeStrategies": [entry("a", enable="no")]},
        ".nodeStrategies[0].enable: is 'no'",
    ),
}


@pytest.mark.parametrize(("reader", "document", "told"), SWITCH_FAULTS.values(), ids=SWITCH_FAULTS.keys())
def test_a_broken_switch_is_named(
    reader: Callable[[ConfigMap | None], object], document: dict[str, Any], told: str
) -> None:
    """By whoever reads it, and by no other."""
    source = config_map(resource_threshold_config=document)
    with pytest.raises(ConfigurationFault) as raised:
        reader(source)
    assert f"{THRESHOLD}{told} (expected true or false" in str(raised.value)
    assert sloconfig.suppress_layers(source) and sloconfig.eviction_layers(source)


def test_normalization() -> None:
    """Ratios by CPU model."""
    document = {"enable": True, "ratioModel": {"X": {"baseRatio": 1.5, "hyperThreadEnabledRatio": 1}}}
    layers = sloconfig.normalization_layers(config_map(cpu_normalization_config=document))
    assert layers is not None
    assert layers.cluster == NormalizationFields(True, None, {"X": ModelRatios(1.5, 1.0)})


def test_host_applications() -> None:
    """An entry may say that its nodes have none."""
    document = {"applications": [{"name": "nginx", "qos": "LS"}], "nodeConfigs": [entry("a", applications=[])]}
    layers = sloconfig.host_application_layers(config_map(host_application_config=document))
    assert layers is not None
    assert [[a.name for a in fields.applications or ()] for fields in layers.of({"pool": "a"})] == [["nginx"], []]


def broken(key: str, document: Any, told: str) -> tuple[str, Any, str]:
    return key, document, told


BROKEN: dict[str, tuple[str, Any, str]] = {
    "a trailing comma": broken(HOST, '{"applications": [],}', ": cannot be read: JSON is malformed: trailing comma"),
    "a list": broken(COLOCATION, [], ": is a list (expected an object"),
    "null": broken(COLOCATION, "null", ": is null (expected an object"),
    "a switch": broken(COLOCATION, {"enable": "true"}, ".enable: is 'true' (expected true or false"),
    "a negative threshold": broken(
        COLOCATION,
        {"cpuReclaimThresholdPercent": -1},
        ".cpuReclaimThresholdPercent: is -1 (expected a whole number >= 0)",
    ),
    "a threshold with a part": broken(
        COLOCATION,
        {"memoryReclaimThresholdPercent": 65.5},
        ".memoryReclaimThresholdPercent: is 65.5 (expected a whole number",
    ),
    "an unknown policy": broken(
        COLOCATION,
        {"cpuCalculatePolicy": "peak"},
        ".cpuCalculatePolicy: is 'peak' (write one of usage, request, maxUsageRequest)",
    ),
    "an unknown memory policy": broken(
        COLOCATION,
        {"metricMemoryCollectPolicy": "rss"},
        ".metricMemoryCollectPolicy: is 'rss' (write one of usageWithout",
    ),
    "an unknown mid mode": broken(
        COLOCATION, {"midReclaimMode": "dynamic"}, ".midReclaimMode: is 'dynamic' (write one of static)"
    ),
    "mid above the node": broken(COLOCATION, {"midUnallocatedPercent": 101}, ".midUnallocatedPercent: is 101"),
    "a negative cap": broken(COLOCATION, {"batchCPUThresholdPercent": -5}, ".batchCPUThresholdPercent: is -5"),
    "never degraded": broken(
        COLOCATION, {"degradeTimeMinutes": 0}, ".degradeTimeMinutes: is 0 (expected a number >= 1.0)"
    ),
    "no difference": broken(
        COLOCATION, {"resourceDiffThreshold": 0}, ".resourceDiffThreshold: is 0 (expected a number > 0.0)"
    ),
    "a window in words": broken(
        COLOCATION,
        {"metricAggregateDurationSeconds": "5m"},
        ".metricAggregateDurationSeconds: is '5m' (expected a number",
    ),
    "a wrong duration": broken(
        COLOCATION,
        {"metricAggregatePolicy": {"durations": ["5m", "10"]}},
        ".metricAggregatePolicy.durations[1]: is '10' (expected a duration",
    ),
    "entries that are no list": broken(COLOCATION, {"nodeConfigs": {}}, ".nodeConfigs: is an object (expected a list"),
    "an entry that is no object": broken(COLOCATION, {"nodeConfigs": [3]}, ".nodeConfigs[0]: is 3 (expected an object"),
    "a field of an entry": broken(
        COLOCATION,
        {"nodeConfigs": [{}, entry("a", cpuReclaimThresholdPercent="60")]},
        ".nodeConfigs[1].cpuReclaimThresholdPercent: is '60'",
    ),
    "an unknown operator": broken(
        COLOCATION,
        {"nodeConfigs": [{"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}]},
        ".nodeConfigs[0].nodeSelector.matchExpressions[0].operator: is 'Is' (write one of In, NotIn, Exists, DoesNotExist)",
    ),
    "an operator without values": broken(
        COLOCATION,
        {"nodeConfigs": [{"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]},
        ".nodeConfigs[0].nodeSelector.matchExpressions[0]: is not valid (In and NotIn need values",
    ),
    "a label that is no text": broken(
        COLOCATION,
        {"nodeConfigs": [{"nodeSelector": {"matchLabels": {"a": "b", "c": True}}}]},
        ".nodeConfigs[0].nodeSelector.matchLabels['c']: is True (expected a text",
    ),
    "a cluster strategy": broken(THRESHOLD, {"clusterStrategy": 0}, ".clusterStrategy: is 0 (expected an object"),
    "a threshold": broken(
        THRESHOLD,
        {"clusterStrategy": {"cpuSuppressThresholdPercent": 101}},
        ".clusterStrategy.cpuSuppressThresholdPercent: is 101 (expected a whole number <= 100)",
    ),
    "an entry's threshold": broken(
        THRESHOLD,
        {"nodeStrategies": [entry("a", cpuSuppressPolicy="off")]},
        ".nodeStrategies[0].cpuSuppressPolicy: is 'off'",
    ),
    "a ratio below 1": broken(
        NORMALIZATION,
        {"ratioModel": {"X": {}, "Y @ 2.5GHz": {"turboEnabledRatio": 0.9}}},
        ".ratioModel['Y @ 2.5GHz'].turboEnabledRatio: is 0.9 (expected a number >= 1.0)",
    ),
    "a default ratio above 5": broken(
        NORMALIZATION, {"defaultRatio": 5.5}, ".defaultRatio: is 5.5 (expected a number <= 5.0)"
    ),
    "a host application": broken(
        HOST, {"applications": [{"name": "a"}, {"name": "a"}]}, ": is not valid (expected each application's name once)"
    ),
}


@pytest.mark.parametrize(("key", "document", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_document_names_the_field(key: str, document: Any, told: str) -> None:
    """ConfigMap, key, path, value and fix in one line; the other keys are read all the same."""
    source = config_map(**{key.replace("-", "_"): document})
    with pytest.raises(ConfigurationFault) as raised:
        READERS[key](source)
    assert str(raised.value).startswith(f"ConfigMap koordinator-system/slo-controller-config: {key}{told}")
    assert [READERS[other](source) for other in READERS if other != key] == [None] * 3


OVERLAYS: dict[str, tuple[ColocationFields | CollectPolicy | ReportPolicy, ColocationStrategy]] = {
    "silent": (ColocationFields(), ColocationStrategy()),
    "everything": (
        ColocationFields(
            enable=False,
            aggregate_seconds=120.0,
            report_seconds=45.0,
            aggregate_policy=windows(60, 300),
            memory_collect_policy=MemoryCollectPolicy.WITH_PAGE_CACHE,
            cpu_reclaim_threshold_pct=70,
            memory_reclaim_threshold_pct=80,
            cpu_policy=CalculatePolicy.MAX_USAGE_REQUEST,
            memory_policy=CalculatePolicy.REQUEST,
            batch_cpu_threshold_pct=50,
            batch_memory_threshold_pct=0,
            mid_mode=MidMode.STATIC,
            mid_cpu_threshold_pct=40,
            mid_memory_threshold_pct=30,
            mid_unallocated_pct=20,
            mid_static_cpu_reserved_pct=10,
            mid_static_memory_reserved_pct=5,
            degrade_minutes=5.0,
            update_interval_seconds=60.0,
            resource_diff_ratio=0.3,
        ),
        ColocationStrategy(
            enable=False,
            cpu_reclaim_threshold_pct=70,
            memory_reclaim_threshold_pct=80,
            cpu_policy=CalculatePolicy.MAX_USAGE_REQUEST,
            memory_policy=CalculatePolicy.REQUEST,
            batch_cpu_threshold_pct=50,
            batch_memory_threshold_pct=0,
            mid_mode=MidMode.STATIC,
            mid_cpu_threshold_pct=40,
            mid_memory_threshold_pct=30,
            mid_unallocated_pct=20,
            mid_static_cpu_reserved_pct=10,
            mid_static_memory_reserved_pct=5,
            memory_collect_policy=MemoryCollectPolicy.WITH_PAGE_CACHE,
            aggregate_seconds=120.0,
            aggregate_durations_seconds=(60.0, 300.0),
            report_seconds=45.0,
            degrade_seconds=300.0,
            update_interval_seconds=60.0,
            resource_diff_ratio=0.3,
        ),
    ),
    "shorter than koordlet takes": (
        ColocationFields(aggregate_seconds=1.0, report_seconds=0.0, update_interval_seconds=-1.0),
        ColocationStrategy(aggregate_seconds=60.0, report_seconds=30.0, update_interval_seconds=10.0),
    ),
    "longer than is kept": (
        ColocationFields(aggregate_seconds=7200.0, report_seconds=7200.0, update_interval_seconds=7200.0),
        ColocationStrategy(aggregate_seconds=3600.0, report_seconds=3600.0, update_interval_seconds=3600.0),
    ),
    # 5 s are 10 s; two and three hours are the same longest window, which is kept once
    "windows out of range": (
        ColocationFields(aggregate_policy=windows(5, 300, 7200, 10_800)),
        ColocationStrategy(aggregate_durations_seconds=(10.0, 300.0, 3600.0)),
    ),
    "more windows than are kept": (
        ColocationFields(aggregate_policy=windows(60, 120, 180, 240, 300, 360, 420)),
        ColocationStrategy(aggregate_durations_seconds=(60.0, 120.0, 180.0, 240.0, 300.0, 360.0)),
    ),
    "what NodeMetric is to measure": (
        CollectPolicy(7200.0, MemoryCollectPolicy.WITH_HOT_PAGE_CACHE),
        ColocationStrategy(aggregate_seconds=3600.0, memory_collect_policy=MemoryCollectPolicy.WITH_HOT_PAGE_CACHE),
    ),
    "how NodeMetric is to be written": (
        ReportPolicy(0.0, windows(600)),
        ColocationStrategy(report_seconds=30.0, aggregate_durations_seconds=(600.0,)),
    ),
    "no windows": (ColocationFields(aggregate_policy=AggregatePolicy([])), ColocationStrategy()),
}


@pytest.mark.parametrize(("layer", "expected"), OVERLAYS.values(), ids=OVERLAYS.keys())
def test_what_a_layer_sets_replaces(
    layer: ColocationFields | CollectPolicy | ReportPolicy, expected: ColocationStrategy
) -> None:
    """Every field, in the model's units; 0 is a value, silence is not. What only reports say is brought into range."""
    assert sloconfig.colocation_overlaid(ColocationStrategy(), layer) == expected


def test_the_live_window_never_outgrows_the_aggregate_one() -> None:
    """Else the strategy would be refused as a whole."""
    base = ColocationStrategy(live_window_seconds=200.0)
    found = sloconfig.colocation_overlaid(base, ColocationFields(aggregate_seconds=100.0))
    assert (found.aggregate_seconds, found.live_window_seconds) == (100.0, 100.0)


def test_a_suppress_layer() -> None:
    """An empty policy is silence."""
    base = SuppressStrategy(threshold_pct=80, policy=SuppressPolicy.CPUSET)
    assert sloconfig.suppress_overlaid(base, SuppressFields(policy=SuppressPolicyText.UNSET)) == base
    found = sloconfig.suppress_overlaid(base, SuppressFields(0, 0, SuppressPolicyText.CFS_QUOTA))
    assert found == SuppressStrategy(True, 0, 0, SuppressPolicy.CFS_QUOTA)


def test_an_eviction_layer() -> None:
    """Every field in the model's units; an empty policy is silence."""
    fields = EvictionFields(80, 75, 120, 100, 60, 50, 85, 7200, 90, 85, 130, 110, EvictionPolicy.ALLOCATABLE, -1, 7999)
    found = sloconfig.eviction_overlaid(EvictionStrategy(thrash_full_pct=50), fields)
    assert found == EvictionStrategy(
        memory_threshold_pct=80,
        memory_lower_pct=75,
        memory_allocatable_threshold_pct=120,
        memory_allocatable_lower_pct=100,
        cpu_satisfaction_upper_pct=60,
        cpu_satisfaction_lower_pct=50,
        cpu_be_usage_threshold_pct=85,
        cpu_window_seconds=3600.0,
        cpu_threshold_pct=90,
        cpu_lower_pct=85,
        cpu_allocatable_threshold_pct=130,
        cpu_allocatable_lower_pct=110,
        cpu_limit_policy=CpuLimitPolicy.ALLOCATABLE,
        priority_threshold=-1,
        allocatable_priority_threshold=7999,
        thrash_full_pct=50,
    )
    silent = EvictionFields(cpu_limit_policy=EvictionPolicy.UNSET)
    assert sloconfig.eviction_overlaid(found, silent) == found


# lower and upper as they are written -> in force, over 50 and 60
SATISFACTION: dict[str, tuple[int | None, int | None, tuple[int | None, int | None]]] = {
    "silent": (None, None, (50, 60)),
    "at their ends": (60, 99, (60, 99)),
    "nothing": (0, 0, (None, None)),
    "a lower one above 60 %": (61, 90, (None, 90)),
    "an upper one of everything": (1, 100, (1, None)),
    "alone": (None, 1, (50, 1)),
}


@pytest.mark.parametrize(("lower", "upper", "expected"), SATISFACTION.values(), ids=SATISFACTION.keys())
def test_a_satisfaction_out_of_range_ends_its_rule(
    lower: int | None, upper: int | None, expected: tuple[int | None, int | None]
) -> None:
    """Without one of its shares the rule is off; what stays is a strategy that the agent's own settings could hold."""
    base = EvictionStrategy(cpu_satisfaction_lower_pct=50, cpu_satisfaction_upper_pct=60)
    layer = EvictionFields(cpu_satisfaction_lower_pct=lower, cpu_satisfaction_upper_pct=upper)
    found = sloconfig.eviction_overlaid(base, layer)
    assert (found.cpu_satisfaction_lower_pct, found.cpu_satisfaction_upper_pct) == expected
    assert msgspec.convert(msgspec.to_builtins(found), EvictionStrategy) == found


def test_a_normalization_layer() -> None:
    """CPU models are added one by one, each replaced as a whole."""
    base = NormalizationStrategy(True, 1.1, {"X": RatioModel(1.5, 1.2), "Y": RatioModel(2.0)})
    found = sloconfig.normalization_overlaid(
        base, NormalizationFields(ratio_model={"X": ModelRatios(turbo_enabled_ratio=3.0)})
    )
    assert found == NormalizationStrategy(True, 1.1, {"X": RatioModel(turbo=3.0), "Y": RatioModel(2.0)})
