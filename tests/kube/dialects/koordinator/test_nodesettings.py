"""Which document wins, and what happens while one cannot be read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.dialects.koordinator.nodesettings import (
    Documents,
    Sources,
    annotated_strategy,
    node_settings,
    ratio_label,
    read,
)
from kube.objects import ConfigMap, Metadata, NodeMetric, NodeSLO
from model.fault import ConfigurationFault
from model.node import Node
from model.nodesettings import NodeSettings
from model.resources import BATCH_CPU, ResourceVector
from model.strategy import (
    EvictionStrategy,
    HostApplication,
    NormalizationStrategy,
    RatioModel,
    SuppressPolicy,
    SuppressStrategy,
)

NODE = "node.koordinator.sh/"


def text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def config_map(**documents: Any) -> ConfigMap:
    data = {key.replace("_", "-"): text(value) for key, value in documents.items()}
    return ConfigMap(Metadata(name="slo-controller-config", namespace="koordinator-system"), data)


def node(labels: dict[str, str] | None = None, **annotations: Any) -> Node:
    named = {NODE + key.replace("_", "-"): text(value) for key, value in annotations.items()}
    return Node("n", labels=labels or {}, annotations=named)


def metric(**policy: Any) -> NodeMetric:
    return NodeMetric(Metadata(name="n"), {"metricCollectPolicy": policy})


def slo(**spec: Any) -> NodeSLO:
    return NodeSLO(Metadata(name="n"), spec)


def settings(sources: Sources, defaults: NodeSettings | None = None) -> NodeSettings:
    documents, faults = read(sources)
    assert faults == ()
    return node_settings(documents, defaults or NodeSettings())


def test_without_documents_the_defaults_hold() -> None:
    """Lending is on without a ConfigMap: installing the agent says so."""
    defaults = NodeSettings(
        suppress=SuppressStrategy(threshold_pct=50), host_applications=(HostApplication("a", "/a"),)
    )
    assert settings(Sources(), defaults) == defaults
    assert settings(Sources(node(), None, slo(), metric()), defaults) == defaults


def cluster(percent: int, **more: Any) -> ConfigMap:
    return config_map(colocation_config={"cpuReclaimThresholdPercent": percent, "enable": True, **more})


ENTRY = [{"nodeSelector": {"matchLabels": {"pool": "a"}}, "cpuReclaimThresholdPercent": 30}]
RATIO = {NODE + "cpu-reclaim-ratio": "0.5"}

PRECEDENCE: dict[str, tuple[Sources, int]] = {
    "defaults": (Sources(node()), 60),
    "cluster": (Sources(node(), cluster(20)), 20),
    "node entry": (Sources(node({"pool": "a"}), cluster(20, nodeConfigs=ENTRY)), 30),
    "another pool": (Sources(node({"pool": "b"}), cluster(20, nodeConfigs=ENTRY)), 20),
    "annotation": (
        Sources(
            node({"pool": "a"}, colocation_strategy={"cpuReclaimThresholdPercent": 40}), cluster(20, nodeConfigs=ENTRY)
        ),
        40,
    ),
    "label": (
        Sources(
            node({"pool": "a", **RATIO}, colocation_strategy={"cpuReclaimThresholdPercent": 40}),
            cluster(20, nodeConfigs=ENTRY),
        ),
        50,
    ),
}


@pytest.mark.parametrize(("sources", "percent"), PRECEDENCE.values(), ids=PRECEDENCE.keys())
def test_order_of_the_layers(sources: Sources, percent: int) -> None:
    """Each beats the ones before; what a layer does not say stays."""
    found = settings(sources).colocation
    assert (found.cpu_reclaim_threshold_pct, found.memory_reclaim_threshold_pct, found.enable) == (percent, 65, True)


ENABLE: dict[str, tuple[Sources, bool]] = {
    "no document": (Sources(node()), True),
    "a document that does not say": (Sources(node(), config_map(colocation_config={})), False),
    "a document that says on": (Sources(node(), config_map(colocation_config={"enable": True})), True),
    "other keys only": (Sources(node(), config_map(resource_threshold_config={})), False),
    "an empty ConfigMap": (Sources(node(), ConfigMap()), False),
    "the annotation says on, of other keys only": (
        Sources(node(colocation_strategy={"enable": True}), config_map(resource_threshold_config={})),
        True,
    ),
    "the node's pool is off": (
        Sources(
            node({"pool": "a"}),
            config_map(
                colocation_config={
                    "enable": True,
                    "nodeConfigs": [{"nodeSelector": {"matchLabels": {"pool": "a"}}, "enable": False}],
                }
            ),
        ),
        False,
    ),
    "the annotation says on": (
        Sources(node(colocation_strategy={"enable": True}), config_map(colocation_config={})),
        True,
    ),
    "the annotation does not say": (Sources(node(colocation_strategy={"degradeTimeMinutes": 5})), True),
}


@pytest.mark.parametrize(("sources", "expected"), ENABLE.values(), ids=ENABLE.keys())
def test_lending_is_off_unless_the_document_says_on(sources: Sources, expected: bool) -> None:
    """As Koordinator's defaults are; only the absence of the whole ConfigMap leaves it to the agent."""
    assert settings(sources).colocation.enable is expected


def test_the_metrics_policy_comes_last() -> None:
    """Koordinator renders it from all the others, and its agent reads nothing else."""
    sources = Sources(
        node(colocation_strategy={"metricAggregateDurationSeconds": 600, "metricReportIntervalSeconds": 120}),
        metric=metric(aggregateDurationSeconds=240, nodeAggregatePolicy={"durations": ["1m"]}),
    )
    found = settings(sources).colocation
    assert (found.aggregate_seconds, found.report_seconds) == (240.0, 120.0)
    assert found.aggregate_durations_seconds == (60.0,)


def test_suppression_field_by_field() -> None:
    """ConfigMap over defaults, its node entry over that, NodeSLO over all."""
    document = {
        "clusterStrategy": {"cpuSuppressThresholdPercent": 70, "cpuSuppressMinPercent": 5},
        "nodeStrategies": [{"nodeSelector": {}, "cpuSuppressPolicy": "cpuset"}],
    }
    sources = Sources(
        node(),
        config_map(resource_threshold_config=document),
        slo(resourceUsedThresholdWithBE={"cpuSuppressThresholdPercent": 65}),
    )
    assert settings(sources).suppress == SuppressStrategy(True, 65, 5, SuppressPolicy.CPUSET)


def test_evictions_field_by_field() -> None:
    """ConfigMap over defaults, its node entry over that, NodeSLO over all."""
    document = {
        "clusterStrategy": {"memoryEvictThresholdPercent": 90, "cpuEvictThresholdPercent": 95},
        "nodeStrategies": [{"nodeSelector": {}, "memoryEvictLowerPercent": 60}],
    }
    told = slo(resourceUsedThresholdWithBE={"memoryEvictThresholdPercent": 80, "evictEnabledPriorityThreshold": 5999})
    found = settings(Sources(node(), config_map(resource_threshold_config=document), told)).eviction
    assert found == EvictionStrategy(
        memory_threshold_pct=80, memory_lower_pct=60, cpu_threshold_pct=95, priority_threshold=5999
    )


# the agent's own switch, the ConfigMap's, the NodeSLO's -> suppression, evictions
SWITCHES: dict[str, tuple[bool, bool | None, bool | None, tuple[bool, bool]]] = {
    "nobody says": (True, None, None, (True, True)),
    "the ConfigMap switches both off": (True, False, None, (False, False)),
    "NodeSLO comes last": (True, False, True, (True, True)),
    "NodeSLO switches both off": (True, True, False, (False, False)),
    "the agent's own off is off": (False, True, True, (True, False)),
}


@pytest.mark.parametrize(("own", "cluster_says", "slo_says", "expected"), SWITCHES.values(), ids=SWITCHES.keys())
def test_who_switches_off(
    own: bool, cluster_says: bool | None, slo_says: bool | None, expected: tuple[bool, bool]
) -> None:
    """One switch for both in the documents; evictions have one of the agent's own, as koordlet's feature gates."""
    sources = Sources(
        node(),
        config_map(resource_threshold_config={"clusterStrategy": {"enable": cluster_says}}),
        slo(resourceUsedThresholdWithBE={"enable": slo_says}),
    )
    found = settings(sources, NodeSettings(eviction=EvictionStrategy(enable=own)))
    assert (found.suppress.enable, found.eviction.enable) == expected


def in_config_map(*, entries: Any = None, **fields: Any) -> Sources:
    document = {"clusterStrategy": fields, "nodeStrategies": entries}
    return Sources(node({"pool": "b"}), config_map(resource_threshold_config=document))


def in_slo(*, sections: dict[str, Any] | None = None, **fields: Any) -> Sources:
    return Sources(node({"pool": "b"}), slo=slo(resourceUsedThresholdWithBE=fields, **(sections or {})))


OTHER_POOL = {"matchLabels": {"pool": "a"}}
OFF_AND_WRONG: dict[str, Sources] = {
    "NodeSLO, suppression": in_slo(enable=False, cpuSuppressThresholdPercent=101),
    "NodeSLO, an eviction": in_slo(enable=False, memoryEvictThresholdPercent="90"),
    "NodeSLO, shares reversed": in_slo(enable=False, memoryEvictThresholdPercent=50, memoryEvictLowerPercent=60),
    "NodeSLO, host applications": in_slo(sections={"hostApplications": "x"}, enable=False),
    "NodeSLO, a section nothing acts on": in_slo(sections={"cpuBurstStrategy": "auto"}, enable=False),
    "ConfigMap, suppression": in_config_map(enable=False, cpuSuppressPolicy="off"),
    "ConfigMap, an eviction": in_config_map(enable=False, memoryEvictThresholdPercent=101),
    "ConfigMap, another pool's entry": in_config_map(
        enable=False, entries=[{"nodeSelector": OTHER_POOL, "memoryEvictThresholdPercent": 101}]
    ),
    "ConfigMap, an entry's selector": in_config_map(enable=False, entries=[{"nodeSelector": 3}]),
    "ConfigMap, no entries": in_config_map(enable=False, entries=3),
}


@pytest.mark.parametrize("sources", OFF_AND_WRONG.values(), ids=OFF_AND_WRONG.keys())
@pytest.mark.parametrize("kept", [None, Documents()], ids=["a new agent", "a running one"])
def test_off_is_off_whatever_else_is_wrong(sources: Sources, kept: Documents | None) -> None:
    """Suppression and evictions end, and the fault is told all the same."""
    documents, faults = read(sources, kept)
    found = node_settings(documents, NodeSettings())
    assert (found.suppress.enable, found.eviction.enable, len(faults)) == (False, False, 1)


def test_a_running_agent_is_switched_off() -> None:
    """Though what else is said cannot be read, which stays as it was."""
    good, _ = read(in_slo(enable=True, cpuSuppressThresholdPercent=40, memoryEvictThresholdPercent=90))
    documents, faults = read(
        in_slo(enable=False, cpuSuppressThresholdPercent=101, memoryEvictThresholdPercent=80), good
    )
    found = node_settings(documents, NodeSettings())
    assert [fault.where for fault in faults] == [
        "NodeSLO n: spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent"
    ]
    assert (found.suppress.enable, found.eviction.enable) == (False, False)
    assert (found.suppress.threshold_pct, found.eviction.memory_threshold_pct) == (40, 80)


@pytest.mark.parametrize("was", [True, False])
def test_a_switch_that_cannot_be_read_stays_where_it_was(was: bool) -> None:
    """In each of its documents."""
    for told in (in_slo, in_config_map, lambda enable: in_config_map(entries=[{"nodeSelector": {}, "enable": enable}])):
        good, _ = read(told(enable=was))
        documents, faults = read(told(enable="no"), good)
        found = node_settings(documents, NodeSettings())
        assert (found.suppress.enable, found.eviction.enable, len(faults)) == (was, was, 1)


def test_a_pools_own_switch() -> None:
    """The entry's word comes after the cluster's."""
    entries = [{"nodeSelector": OTHER_POOL, "enable": True}, {"nodeSelector": {}, "enable": False}]
    for pool, expected in (("a", True), ("b", False)):
        found = settings(Sources(node({"pool": pool}), in_config_map(enable=not expected, entries=entries).config_map))
        assert (found.suppress.enable, found.eviction.enable) == (expected, expected)


def test_a_wrong_eviction_keeps_what_was_said_of_it() -> None:
    """And a change of suppression beside it takes effect; one fault, though the text is read twice."""
    good, _ = read(
        Sources(
            config_map=config_map(resource_threshold_config={"clusterStrategy": {"memoryEvictThresholdPercent": 90}})
        )
    )
    wrong = {"clusterStrategy": {"memoryEvictThresholdPercent": "90", "cpuSuppressThresholdPercent": 40}}
    documents, (fault,) = read(Sources(config_map=config_map(resource_threshold_config=wrong)), good)
    assert fault.where.endswith("clusterStrategy.memoryEvictThresholdPercent")
    found = node_settings(documents, NodeSettings())
    assert (found.eviction.memory_threshold_pct, found.suppress.threshold_pct) == (90, 40)
    _, faults = read(Sources(config_map=config_map(resource_threshold_config="{")), good)
    assert len(faults) == 1


def applications(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "qos": "LS"} for name in names]


HOST: dict[str, tuple[Sources, list[str]]] = {
    "defaults": (Sources(), ["own"]),
    "ConfigMap": (
        Sources(config_map=config_map(host_application_config={"applications": applications("a", "b")})),
        ["a", "b"],
    ),
    "ConfigMap's entry": (
        Sources(
            config_map=config_map(
                host_application_config={
                    "applications": applications("a"),
                    "nodeConfigs": [{"nodeSelector": {}, "applications": applications("c")}],
                }
            )
        ),
        ["c"],
    ),
    "NodeSLO": (
        Sources(
            config_map=config_map(host_application_config={"applications": applications("a")}),
            slo=slo(hostApplications=applications("d")),
        ),
        ["d"],
    ),
    "NodeSLO with none": (
        Sources(
            config_map=config_map(host_application_config={"applications": applications("a")}),
            slo=slo(hostApplications=[]),
        ),
        [],
    ),
    "NodeSLO that does not say": (
        Sources(config_map=config_map(host_application_config={"applications": applications("a")}), slo=slo()),
        ["a"],
    ),
}


@pytest.mark.parametrize(("sources", "expected"), HOST.values(), ids=HOST.keys())
def test_host_applications(sources: Sources, expected: list[str]) -> None:
    """A list replaces the list before it."""
    found = settings(sources, NodeSettings(host_applications=(HostApplication("own", "/own"),)))
    assert [application.name for application in found.host_applications] == expected


NORMALIZATION: dict[str, tuple[ConfigMap | None, NormalizationStrategy]] = {
    "no ConfigMap": (None, NormalizationStrategy(True, None, {"Y": RatioModel(1.1)})),
    # 1.0 is said aloud, so that what another controller left in the Node's annotation does not count any more
    "off unless it says on": (
        config_map(cpu_normalization_config={}),
        NormalizationStrategy(False, 1.0, {"Y": RatioModel(1.1)}),
    ),
    "a ConfigMap that does not speak of it": (
        config_map(colocation_config={"enable": True}),
        NormalizationStrategy(False, 1.0, {}),
    ),
    "a model more": (
        config_map(
            cpu_normalization_config={"enable": True, "defaultRatio": 1.3, "ratioModel": {"X": {"baseRatio": 2}}}
        ),
        NormalizationStrategy(True, 1.3, {"Y": RatioModel(1.1), "X": RatioModel(2.0)}),
    ),
}


@pytest.mark.parametrize(("source", "expected"), NORMALIZATION.values(), ids=NORMALIZATION.keys())
def test_normalization(source: ConfigMap | None, expected: NormalizationStrategy) -> None:
    """The document over the agent's own table; without its key it is off, whatever the agent's own table says."""
    defaults = NodeSettings(normalization=NormalizationStrategy(True, None, {"Y": RatioModel(1.1)}))
    assert settings(Sources(config_map=source), defaults).normalization == expected


def test_a_broken_document_keeps_its_last_good_content() -> None:
    """And only its own: a switch to off in another one takes effect."""
    good, _ = read(
        Sources(node(RATIO), cluster(20), slo(resourceUsedThresholdWithBE={"cpuSuppressThresholdPercent": 65}))
    )
    broken = Sources(
        node({NODE + "cpu-reclaim-ratio": "half"}),
        config_map(colocation_config={"enable": False}, host_application_config="{"),
        slo(resourceUsedThresholdWithBE={"cpuSuppressThresholdPercent": 650}),
    )
    documents, faults = read(broken, good)
    assert [fault.where for fault in faults] == [
        "ConfigMap koordinator-system/slo-controller-config: host-application-config",
        "NodeSLO n: spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent",
        "Node n: label node.koordinator.sh/cpu-reclaim-ratio",
    ]
    found = node_settings(documents, NodeSettings())
    assert (found.colocation.enable, found.colocation.cpu_reclaim_threshold_pct) == (False, 50)
    assert found.suppress.threshold_pct == 65


# annotations and labels that cannot be read
EACH_BY_ITSELF: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "reservation": ({NODE + "reservation": "{"}, {}),
    "third parties": ({NODE + "thirdPartyAllocations": "{"}, {}),
    "raw allocatable": ({NODE + "raw-allocatable": "{"}, {}),
    "strategy": ({NODE + "colocation-strategy": "{"}, {}),
    "CPU ratio": ({}, {NODE + "cpu-reclaim-ratio": "x"}),
    "memory ratio": ({}, {NODE + "memory-reclaim-ratio": "x"}),
    "static CPU ratio": ({}, {NODE + "mid-static-cpu-reserved-ratio": "x"}),
    "static memory ratio": ({}, {NODE + "mid-static-memory-reserved-ratio": "x"}),
}


def words(number: int) -> tuple[dict[str, str], dict[str, str]]:
    """Annotations and labels that all say `number` in their own way."""
    allocations = {"allocations": [{"priority": "koord-batch", "resources": {BATCH_CPU: number}}]}
    annotations = {
        "reservation": text({"resources": {"cpu": f"{number}m"}}),
        "thirdPartyAllocations": text(allocations),
        "raw-allocatable": text({"cpu": f"{number}m"}),
        "colocation-strategy": text({"batchCPUThresholdPercent": number}),
    }
    labels = ("cpu-reclaim", "memory-reclaim", "mid-static-cpu-reserved", "mid-static-memory-reserved")
    return (
        {NODE + name: value for name, value in annotations.items()},
        {NODE + f"{name}-ratio": f"{number}e-2" for name in labels},
    )


def heard(documents: Documents) -> dict[str, int | None]:
    """What each of them says."""
    strategy = node_settings(documents, NodeSettings()).colocation
    third, raw = documents.node.third_party, documents.node.raw_allocatable
    return {
        "reservation": documents.node.reserved["cpu"],
        "third parties": third[BATCH_CPU] if third else None,
        "raw allocatable": raw["cpu"] if raw else None,
        "strategy": strategy.batch_cpu_threshold_pct,
        "CPU ratio": strategy.cpu_reclaim_threshold_pct,
        "memory ratio": strategy.memory_reclaim_threshold_pct,
        "static CPU ratio": strategy.mid_static_cpu_reserved_pct,
        "static memory ratio": strategy.mid_static_memory_reserved_pct,
    }


@pytest.mark.parametrize("which", EACH_BY_ITSELF)
def test_one_broken_annotation_or_label_holds_up_no_other(which: str) -> None:
    """It keeps what it said itself; all others of the same Node are followed."""
    annotations, labels = words(10)
    good, faults = read(Sources(Node("n", labels=labels, annotations=annotations)))
    assert faults == () and set(heard(good).values()) == {10}
    annotations, labels = words(20)
    bad_annotation, bad_label = EACH_BY_ITSELF[which]
    broken = Node("n", labels={**labels, **bad_label}, annotations={**annotations, **bad_annotation})
    documents, faults = read(Sources(broken), good)
    assert len(faults) == 1
    assert heard(documents) == {name: 10 if name == which else 20 for name in heard(good)}


@pytest.mark.parametrize("ratio", ["0.90", "5.01", "fast"])
def test_an_unreadable_normalization_ratio_multiplies_nothing(ratio: str) -> None:
    """Nor does the one before; and it is no reason to lend nothing. It is told all the same."""
    good, _ = read(Sources(node(cpu_normalization_ratio="1.50")))
    assert good.node.normalization_ratio == 1.5
    for kept in (None, good):
        documents, (fault,) = read(Sources(node(cpu_normalization_ratio=ratio)), kept)
        assert fault.where == "Node n: annotation node.koordinator.sh/cpu-normalization-ratio"
        assert documents.node.normalization_ratio is None
        assert node_settings(documents, NodeSettings()).colocation.enable


def test_a_config_map_that_is_deleted_lends_nothing_any_more() -> None:
    """Kept is what was broken, not what was deleted; but losing the settings must not lend more than they did.

    Whatever the Node says; normalization ends, suppression and host applications fall back to the agent's own.
    """
    normalization = {"enable": True, "defaultRatio": 1.5}
    before, _ = read(Sources(node(), config_map(colocation_config={}, cpu_normalization_config=normalization)))
    own = NodeSettings(normalization=NormalizationStrategy(True, 1.2), suppress=SuppressStrategy(threshold_pct=50))
    gone = Sources(node(colocation_strategy={"enable": True}))
    for _look in range(2):
        before, faults = read(gone, before)
        assert not faults and str(before.gone) == (
            "ConfigMap koordinator-system/slo-controller-config: was deleted; "
            "nothing more is lent until it is back or the agent is restarted"
        )
        found = node_settings(before, own)
        assert not found.colocation.enable
        assert (found.normalization, found.suppress) == (NormalizationStrategy(default_ratio=1.0), own.suppress)
    back, faults = read(Sources(node(), cluster(20)), before)
    assert faults == () and node_settings(back, own).colocation.cpu_reclaim_threshold_pct == 20
    restarted, faults = read(gone)
    assert faults == () and node_settings(restarted, own).colocation.enable


UNREAD: dict[str, tuple[Sources, bool]] = {
    "colocation-config": (Sources(node(), config_map(colocation_config="{")), False),
    "annotation": (Sources(node(colocation_strategy="{")), False),
    "label": (Sources(node({NODE + "memory-reclaim-ratio": "-1"})), False),
    "reservation": (Sources(node(reservation="{")), False),
    "third parties": (Sources(node(thirdPartyAllocations="{")), False),
    "raw allocatable": (Sources(node(raw_allocatable="{")), False),
    "the metric's window": (Sources(node(), metric=metric(aggregateDurationSeconds="?")), False),
    "the metric's memory": (Sources(node(), metric=metric(nodeMemoryCollectPolicy="?")), False),
    "a metric policy that is no object, told once": (
        Sources(node(), metric=NodeMetric(Metadata(name="n"), {"metricCollectPolicy": 1})),
        False,
    ),
    "how often it is reported": (Sources(node(), metric=metric(reportIntervalSeconds="?")), True),
    "what is reported": (Sources(node(), metric=metric(nodeAggregatePolicy=1)), True),
    "NodeSLO": (Sources(node(), slo=slo(resourceUsedThresholdWithBE=1)), True),
    "host applications": (
        Sources(node(), config_map(colocation_config={"enable": True}, host_application_config="{")),
        True,
    ),
}


@pytest.mark.parametrize(("sources", "lends"), UNREAD.values(), ids=UNREAD.keys())
def test_nothing_is_lent_while_a_limit_was_never_readable(sources: Sources, lends: bool) -> None:
    """A new agent has no last good content: not to know lends less. Reading it once ends that."""
    first, faults = read(sources)
    again, _ = read(sources, first)
    assert len(faults) == 1
    assert [node_settings(documents, NodeSettings()).colocation.enable for documents in (first, again)] == [
        lends,
        lends,
    ]
    mended, _ = read(Sources(node(), cluster(20) if sources.config_map else None), again)
    assert mended.unread == frozenset() and node_settings(mended, NodeSettings()).colocation.enable
    broken_later, _ = read(sources, mended)
    assert node_settings(broken_later, NodeSettings()).colocation.enable


def test_the_nodes_own_words_are_read_too() -> None:
    """Reservation and the like, and the labels the layers are chosen by."""
    documents, _ = read(Sources(node({"pool": "a"}, reservation={"reservedCPUs": "0"})))
    assert documents.node.reserved == ResourceVector({"cpu": 1000})
    assert documents.labels == {"pool": "a"}
    assert read(Sources())[0] == Documents()


RATIOS: dict[str, tuple[str, int]] = {
    "a fraction": ("0.65", 65),
    "without a zero": (".5", 50),
    "above one": ("1.2", 120),
    "one": ("1", 100),
    # 0.29 x 100 is 28.999999999999996 in a double, and int64 cuts
    "cut as a double is": ("0.29", 28),
    "with an exponent": ("65e-2", 65),
    "with a sign": ("+0.7", 70),
    "zero": ("0", 0),
}


@pytest.mark.parametrize(("label", "percent"), RATIOS.values(), ids=RATIOS.keys())
def test_ratio_labels(label: str, percent: int) -> None:
    """int64(ratio x 100), for each of the labels."""
    found = settings(Sources(node({NODE + "cpu-reclaim-ratio": label, NODE + "memory-reclaim-ratio": label})))
    strategy = found.colocation
    assert (strategy.cpu_reclaim_threshold_pct, strategy.memory_reclaim_threshold_pct) == (percent, percent)


def test_cpus_that_are_kept_free() -> None:
    """By number, of the reservation and of system-class pods; a broken annotation keeps what it said."""
    good, faults = read(Sources(node(reservation={"reservedCPUs": "0-1"}, system_qos_resource={"cpuset": "3"})))
    assert (good.node.reserved_cpus, good.node.system_cpus, faults) == ((0, 1), (3,), ())
    broken, faults = read(Sources(node(reservation={"reservedCPUs": "x"}, system_qos_resource={"cpuset": "y"})), good)
    assert (broken.node.reserved_cpus, broken.node.system_cpus, len(faults)) == ((0, 1), (3,), 2)


def test_static_mid_ratios() -> None:
    """They are shares of the node."""
    names = ("mid-static-cpu-reserved-ratio", "mid-static-memory-reserved-ratio")
    found = settings(Sources(node(dict(zip([NODE + name for name in names], ("0.1", "0.2"), strict=True))))).colocation
    assert (found.mid_static_cpu_reserved_pct, found.mid_static_memory_reserved_pct) == (10, 20)


@pytest.mark.parametrize(
    "ratio", ["", "half", "-0.5", "++1", "+", "NaN", "inf", "1e99", "0x1", "1_0", " 0.5", "11", "٠.٥"]
)
def test_a_wrong_ratio_is_named(ratio: str) -> None:
    """Koordinator ignores it in silence; here the last good one stays and somebody is told."""
    with pytest.raises(ConfigurationFault, match=r"^Node n: label node\.koordinator\.sh/cpu-reclaim-ratio"):
        ratio_label("cpu_reclaim_ratio", node({NODE + "cpu-reclaim-ratio": ratio}))


def test_a_share_above_the_node_is_named() -> None:
    """Label, percent and range."""
    with pytest.raises(ConfigurationFault) as raised:
        ratio_label("mid_static_cpu_ratio", node({NODE + "mid-static-cpu-reserved-ratio": "1.5"}))
    assert "label node.koordinator.sh/mid-static-cpu-reserved-ratio" in str(raised.value)
    assert "is 150 (expected a whole number <= 100)" in str(raised.value)


def test_a_wrong_annotation_is_named() -> None:
    """Node, annotation, field."""
    with pytest.raises(ConfigurationFault) as raised:
        annotated_strategy(node(colocation_strategy={"degradeTimeMinutes": "15"}))
    assert str(raised.value).startswith(
        "Node n: annotation node.koordinator.sh/colocation-strategy.degradeTimeMinutes: is '15' (expected a number"
    )
