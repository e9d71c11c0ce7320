"""Whatever a document holds: a value or a ConfigurationFault, never anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import objects
from kube.dialects.gangs.membership import gang_of
from kube.dialects.gangs.networktopology import levels
from kube.dialects.koordinator import schedulerconfig
from kube.dialects.koordinator.cpuburst import burst_terms
from kube.dialects.koordinator.labels import pinned_to
from kube.dialects.koordinator.loadaware import load_terms
from kube.dialects.koordinator.nodemetric import node_metric
from kube.dialects.koordinator.nodesettings import Sources, node_settings, read
from kube.dialects.sublet.eviction import eviction_terms
from kube.dialects.upstream.affinity import affinity, node_terms, spread
from model.fault import ConfigurationFault
from model.node import Node
from model.nodesettings import NodeSettings
from model.strategy import BurstStrategy, ColocationStrategy, EvictionStrategy

BURST_KEYS = st.sampled_from(
    ["policy", "CPUBurstPercent", "cfsQuotaBurstPercent", "cfsQuotaBurstPeriodSeconds", "sharePoolThresholdPercent"]
)
BURST_VALUES = st.none() | st.integers() | st.floats() | st.sampled_from(["auto", "none", "", "cpuBurstOnly", True, []])
KEYS = ("colocation-config", "resource-threshold-config", "host-application-config", "cpu-normalization-config")
ANNOTATIONS = (
    "colocation-strategy",
    "reservation",
    "thirdPartyAllocations",
    "cpu-normalization-ratio",
    "raw-allocatable",
)
LABELS = ("cpu-reclaim-ratio", "memory-reclaim-ratio", "mid-static-cpu-reserved-ratio")
FIELDS = [
    "enable",
    "cpuReclaimThresholdPercent",
    "metricAggregateDurationSeconds",
    "metricAggregatePolicy",
    "durations",
    "cpuCalculatePolicy",
    "degradeTimeMinutes",
    "resourceDiffThreshold",
    "nodeConfigs",
    "nodeStrategies",
    "clusterStrategy",
    "nodeSelector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "applications",
    "name",
    "qos",
    "priority",
    "cgroupPath",
    "base",
    "parentDir",
    "ratioModel",
    "baseRatio",
    "cpuSuppressThresholdPercent",
    "cpuSuppressPolicy",
    "memoryEvictThresholdPercent",
    "memoryEvictLowerPercent",
    "cpuEvictBESatisfactionLowerPercent",
    "cpuEvictPolicy",
    "cpuEvictTimeWindowSeconds",
    "allocatableEvictPriorityThreshold",
    "containers",
    "requests",
    "limits",
    "kubernetes.io/batch-cpu",
    "resourceUsedThresholdWithBE",
    "hostApplications",
    "metricCollectPolicy",
    "reportIntervalSeconds",
    "nodeAggregatePolicy",
    "resources",
    "cpu",
    "reservedCPUs",
    "allocations",
    "updateTime",
    "nodeMetric",
    "nodeUsage",
    "aggregatedNodeUsages",
    "usage",
    "duration",
    "podsMetric",
    "podUsage",
    "numaUsages",
    "hostApplicationMetric",
    "prodPeakMetric",
    "resource",
]
WORDS = [
    "usage",
    "cpuset",
    "In",
    "Exists",
    "LS",
    "koord-batch",
    "CgroupRoot",
    "5m",
    "1h",
    "0-3",
    "2Gi",
    "1",
    "true",
    "2026-01-01T00:00:00Z",
]

names = st.sampled_from(FIELDS) | st.text(max_size=4)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-5, 200)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=8)
)
values: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5), max_leaves=20
)
# Most values are objects, since anything else is refused at once.
documents = st.dictionaries(names, values, max_size=6) | values
texts = documents.map(lambda value: msgspec.json.encode(value).decode()) | st.text()


def check(sources: Sources) -> None:
    """Read, merge, and hold the result to the model's ranges."""
    found, faults = read(sources)
    settings = node_settings(found, NodeSettings())
    msgspec.convert(msgspec.to_builtins(settings.colocation), ColocationStrategy)
    msgspec.convert(msgspec.to_builtins(settings.eviction), EvictionStrategy)
    assert all(str(fault) for fault in faults)
    assert all(application.cgroup.startswith("/") for application in settings.host_applications)


@pytest.mark.parametrize("key", KEYS)
@given(text=texts, labels=st.dictionaries(names, st.text(max_size=3), max_size=2))
def test_a_config_map(key: str, text: str, labels: dict[str, str]) -> None:
    """Every key."""
    source = objects.ConfigMap(objects.Metadata(name="c", namespace="k"), {key: text})
    check(Sources(Node("n", labels=labels), source))


@pytest.mark.parametrize("name", ANNOTATIONS)
@given(text=texts)
def test_a_nodes_annotation(name: str, text: str) -> None:
    """Every annotation that is read."""
    check(Sources(Node("n", annotations={f"node.koordinator.sh/{name}": text})))


@pytest.mark.parametrize("name", LABELS)
@given(text=st.text() | st.floats().map(str))
def test_a_nodes_label(name: str, text: str) -> None:
    """Every ratio."""
    check(Sources(Node("n", labels={f"node.koordinator.sh/{name}": text})))


SPECS: dict[str, Callable[[Any], Sources]] = {
    "NodeSLO": lambda spec: Sources(slo=objects.NodeSLO(objects.Metadata(name="n"), spec)),
    "NodeMetric": lambda spec: Sources(metric=objects.NodeMetric(objects.Metadata(name="n"), spec)),
}


@pytest.mark.parametrize("kind", SPECS)
@given(spec=documents)
def test_a_spec(kind: str, spec: Any) -> None:
    """Whatever a lax definition let in."""
    check(SPECS[kind](spec))


@given(body=documents)
def test_a_metrics_status(body: Any) -> None:
    """Read into a value, or refused with a name."""
    try:
        node_metric(objects.NodeMetric(objects.Metadata(name="n"), None, body))
    except ConfigurationFault as fault:
        assert "NodeMetric n: status" in str(fault)


@given(text=texts)
def test_a_pods_status(text: str) -> None:
    """An unreadable one pins to nothing."""
    found = pinned_to({"scheduling.koordinator.sh/resource-status": text})
    assert isinstance(found.cpuset, str) and list(found.numa_zones) == sorted(set(found.numa_zones))


@given(text=texts)
def test_a_pods_eviction(text: str) -> None:
    """Whatever its annotations hold: a priority of 32 bits, names or nobody, and a notice that ends."""
    names = (
        "koordinator.sh/eviction-policy",
        "koordinator.sh/eviction-priority",
        "sublet.dev/preemption-notice-seconds",
    )
    found = eviction_terms({"koordinator.sh/priority": text}, dict.fromkeys(names, text))
    assert found.features is not None and abs(found.priority) <= 1 << 31 and 0 <= found.notice_seconds < 1_000_000


@given(text=texts | st.builds(lambda key, value: msgspec.json.encode({key: value}).decode(), BURST_KEYS, BURST_VALUES))
def test_a_pods_bursts(text: str) -> None:
    """Whatever the annotation holds: a strategy within its bounds."""
    found = burst_terms({"koordinator.sh/cpuBurst": text}).over(BurstStrategy())
    assert 1 <= found.cpu_pct <= 10_000 and 100 <= found.quota_pct <= 100_000 and -1 <= found.quota_seconds <= 86_400
    assert msgspec.convert(msgspec.to_builtins(found), BurstStrategy) == found


CONSTRAINTS = (
    "nodeAffinity",
    "podAffinity",
    "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "matchFields",
    "matchLabels",
    "labelSelector",
    "namespaceSelector",
    "matchLabelKeys",
    "topologyKey",
    "maxSkew",
    "whenUnsatisfiable",
    "weight",
    "preference",
    "podAffinityTerm",
    "key",
    "operator",
    "values",
)
values = st.none() | st.booleans() | st.integers(-2, 200) | st.sampled_from(["In", "Gt", "x", "5", "metadata.name"])
constraints = st.recursive(
    values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(CONSTRAINTS), inner, max_size=4)
)


@given(raw=st.dictionaries(st.sampled_from(CONSTRAINTS), constraints, max_size=4))
def test_a_pods_constraints(raw: dict[str, Any]) -> None:
    """Read, or refused with the pod's name and the field."""
    for reading in (
        lambda: affinity(raw, "ns", {"app": "x"}, "Pod ns/p: spec.affinity"),
        lambda: spread([raw], {"app": "x"}, "Pod ns/p: spec.topologySpreadConstraints"),
        lambda: node_terms(raw, "Pod ns/p"),
    ):
        try:
            reading()
        except ConfigurationFault as fault:
            assert str(fault).startswith("Pod ns/p")


@given(text=texts)
def test_a_pods_words_about_load_and_topology(text: str) -> None:
    """A load that cannot be read says nothing; a topology is refused by name."""
    prefix = "scheduling.koordinator.sh/load-estimated-"
    found = load_terms({prefix + "scaling-factors": text, prefix + "seconds-after-initialized": text})
    assert all(percent > 0 for _, percent in found.scaling_pct)
    try:
        levels({"gang.scheduling.koordinator.sh/network-topology-spec": text}, "Gang ns/g")
    except ConfigurationFault as fault:
        assert str(fault).startswith("Gang ns/g: annotation")


@given(text=texts)
def test_a_gangs_annotations(text: str) -> None:
    """Always a gang, in a group with itself or alone."""
    names = ("groups", "match-policy", "mode", "waiting-time")
    told = {f"gang.scheduling.koordinator.sh/{name}": text for name in names}
    told |= {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"}
    found = gang_of(objects.Metadata(namespace="ns", name="p", annotations=told))
    assert found is not None and found.spec is not None
    assert not found.spec.groups or "ns/g" in found.spec.groups


@given(profiles=documents, text=texts)
def test_the_schedulers_config_map(profiles: Any, text: str) -> None:
    """Arguments, or a fault that names the ConfigMap."""
    body = msgspec.json.encode({"kind": "KubeSchedulerConfiguration", "profiles": profiles}).decode()
    for data in ({"a": body}, {"a": text}):
        try:
            schedulerconfig.read(data)
        except ConfigurationFault as fault:
            assert str(fault).startswith("ConfigMap koord-scheduler-config")
