"""NodeMetric, read and written."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from embedded.apiserver.apiextensions import schema
from embedded.apiserver.apimachinery.json_patch import merge_patch
from kube import objects
from kube.dialects.documents.document import GoDuration
from kube.dialects.koordinator.nodemetric import collect_policy, node_metric, report_policy, status
from kube.dialects.koordinator.sloconfig import AggregatePolicy, CollectPolicy, ReportPolicy
from model.fault import ConfigurationFault
from model.nodemetric import AggregatedUsage, HostApplicationMetric, NodeMetric, NumaUsage, PodMetric
from model.qos import PriorityBand, QoSClass
from model.report import Usage

DEFINITION = Path(__file__).parents[4] / "deploy/crds/nodemetrics.yaml"
STAMP = "2026-11-21T12:00:00Z"
AT = 1795262400.0
"""2026-11-21 is day 20778 of the epoch: 20778.5 x 86400."""


def metric(body: dict[str, Any] | None = None, spec: Any = None) -> objects.NodeMetric:
    return objects.NodeMetric(objects.Metadata(name="n"), spec, body)


def amounts(cpu: str, memory: str) -> dict[str, Any]:
    return {"resources": {"cpu": cpu, "memory": memory}}


# As koordlet writes it, devices and extensions among it.
WRITTEN: dict[str, Any] = {
    "updateTime": STAMP,
    "nodeMetric": {
        "nodeUsage": {**amounts("1500m", "2Gi"), "devices": [{"type": "gpu", "minor": 0, "health": True}]},
        "systemUsage": amounts("250m", "512Mi"),
        "aggregatedNodeUsages": [
            {"usage": {"avg": amounts("1", "1Gi"), "p95": amounts("2", "1Gi")}, "duration": "5m0s"}
        ],
        "aggregatedSystemUsages": [{"usage": {"p50": amounts("100m", "1Mi")}, "duration": "30m0s"}],
        "numaUsages": [{"numaNodeID": 1, "nodeUsage": amounts("1", "1Gi"), "systemUsage": amounts("0", "1")}],
    },
    "podsMetric": [
        {
            "namespace": "default",
            "name": "web",
            "podUsage": amounts("1", "1Gi"),
            "priority": "koord-prod",
            "qos": "LS",
            "extensions": {"x": 1},
        },
        {"namespace": "default", "name": "batch", "podUsage": amounts("0.1", "1k"), "priority": "", "qos": "?"},
    ],
    "hostApplicationMetric": [{"name": "nginx", "usage": amounts("10m", "5"), "priority": "koord-mid", "qos": "LS"}],
    "prodReclaimableMetric": {"resource": amounts("3", "4Gi")},
    "prodPeakMetric": {"resource": amounts("2500m", "3Gi")},
}
READ = NodeMetric(
    updated_seconds=AT,
    node=Usage(1500, 2 << 30),
    system=Usage(250, 512 << 20),
    pods=(
        PodMetric("default", "web", Usage(1000, 1 << 30), PriorityBand.PROD, QoSClass.LS),
        PodMetric("default", "batch", Usage(100, 1000)),
    ),
    host_applications=(HostApplicationMetric("nginx", Usage(10, 5), PriorityBand.MID, QoSClass.LS),),
    prod_reclaimable=Usage(3000, 4 << 30),
    prod_peak=Usage(2500, 3 << 30),
    node_aggregates=(AggregatedUsage(300.0, {"avg": Usage(1000, 1 << 30), "p95": Usage(2000, 1 << 30)}),),
    system_aggregates=(AggregatedUsage(1800.0, {"p50": Usage(100, 1 << 20)}),),
    numa=(NumaUsage(1, Usage(1000, 1 << 30), Usage(0, 1)),),
)


def test_reading() -> None:
    """The whole status, in base units and Unix seconds; an unknown band or class is none."""
    assert node_metric(metric(WRITTEN)) == READ


def changed(path: str, value: Any) -> dict[str, Any]:
    """A copy of what koordlet writes with another value at one place."""
    body = copy.deepcopy(WRITTEN)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inner: Any = body
    for step in way:
        inner = inner[step]
    inner[last] = value
    return body


ABSENT: dict[str, tuple[str, Any, str, object]] = {
    "no time": ("updateTime", None, "updated_seconds", None),
    "no node": ("nodeMetric", None, "node", None),
    "no usage": ("nodeMetric.nodeUsage", None, "node", None),
    "no memory": ("nodeMetric.nodeUsage.resources", {"cpu": "1"}, "node", None),
    "no CPU": ("nodeMetric.systemUsage.resources", {"memory": "1"}, "system", None),
    "no resources": ("prodReclaimableMetric.resource", {"resources": None}, "prod_reclaimable", None),
    "no prediction": ("prodPeakMetric", None, "prod_peak", None),
    "no pods": ("podsMetric", None, "pods", ()),
    "a pod without either is not measured": ("podsMetric.0.podUsage.resources", {"gpu": "1"}, "pods", READ.pods[1:]),
    "a null pod": ("podsMetric.1", None, "pods", READ.pods[:1]),
    "an application without usage": ("hostApplicationMetric.0", {"name": "nginx"}, "host_applications", ()),
    "a statistic without CPU": (
        "nodeMetric.aggregatedNodeUsages.0.usage.avg",
        {},
        "node_aggregates",
        (AggregatedUsage(300.0, {"p95": Usage(2000, 1 << 30)}),),
    ),
    "a NUMA node without a system": ("nodeMetric.numaUsages.0.systemUsage", None, "numa", ()),
}


@pytest.mark.parametrize(("path", "value", "field", "expected"), ABSENT.values(), ids=ABSENT.keys())
def test_what_is_missing_is_absent(path: str, value: Any, field: str, expected: object) -> None:
    """Never zero: a usage of nothing would lend more than one that is unknown."""
    assert getattr(node_metric(metric(changed(path, value))), field) == expected


@pytest.mark.parametrize(
    ("resources", "usage", "missing"),
    [({"cpu": "2"}, Usage(2000, 0), ("memory",)), ({"memory": "7"}, Usage(0, 7), ("cpu",))],
)
def test_what_is_known_of_a_pod_or_application_counts(
    resources: dict[str, str], usage: Usage, missing: tuple[str, ...]
) -> None:
    """One resource without the other: what is missing is named, since it is not zero."""
    (pod, _) = node_metric(metric(changed("podsMetric.0.podUsage.resources", resources))).pods
    assert (pod.usage, pod.missing) == (usage, missing)
    (application,) = node_metric(
        metric(changed("hostApplicationMetric.0.usage", {"resources": resources}))
    ).host_applications
    assert application.usage == usage


def test_a_status_that_never_was_written() -> None:
    """As a new object is."""
    assert node_metric(metric()) == node_metric(metric({})) == NodeMetric()


BROKEN: dict[str, tuple[str, Any, str]] = {
    "no time": ("updateTime", "yesterday", ".updateTime: is 'yesterday' (Invalid RFC3339"),
    "a time without a zone": ("updateTime", "2026-11-21T12:00:00", ".updateTime: is '2026-11-21T12:00:00' (expected"),
    "no quantity": ("nodeMetric.nodeUsage.resources.cpu", "1x", ".nodeMetric.nodeUsage.resources.cpu: '1x' is not a"),
    "an object": (
        "nodeMetric.systemUsage.resources.memory",
        {},
        ".nodeMetric.systemUsage.resources.memory: {} is not a",
    ),
    "a negative use": (
        "podsMetric.1.podUsage.resources.cpu",
        "-1",
        ".podsMetric[1].podUsage.resources.cpu: '-1' is neg",
    ),
    "no list": ("podsMetric", {}, ".podsMetric: is an object"),
    "a name": ("podsMetric.0.name", 7, ".podsMetric[0].name: is 7"),
    "no duration": (
        "nodeMetric.aggregatedNodeUsages.0.duration",
        "soon",
        ".nodeMetric.aggregatedNodeUsages[0].duration: is 'soon' (expected a duration",
    ),
    "a statistic": (
        "nodeMetric.aggregatedSystemUsages.0.usage.p50.resources.cpu",
        "?",
        ".nodeMetric.aggregatedSystemUsages[0].usage.p50.resources.cpu: '?' is not",
    ),
    "a statistic that is no object": (
        "nodeMetric.aggregatedNodeUsages.0.usage.p95",
        5,
        ".nodeMetric.aggregatedNodeUsages[0].usage['p95']: is 5 (expected an object",
    ),
    "a NUMA node no machine has": (
        "nodeMetric.numaUsages.0.numaNodeID",
        1 << 63,
        ".nodeMetric.numaUsages[0].numaNodeID: is 9223372036854775808 (expected a whole number <=",
    ),
    "a NUMA node's number": ("nodeMetric.numaUsages.0.numaNodeID", "1", ".nodeMetric.numaUsages[0].numaNodeID: is '1'"),
}


@pytest.mark.parametrize(("path", "value", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_status_names_the_field(path: str, value: Any, told: str) -> None:
    """Object, field, value and what may stand there."""
    with pytest.raises(ConfigurationFault) as raised:
        node_metric(metric(changed(path, value)))
    assert str(raised.value).startswith(f"NodeMetric n: status{told}")


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("podsMetric", [{}] * 5_000, ".podsMetric: has 5000 rows (write at most 4096)"),
        ("hostApplicationMetric", [{}] * 2_000, ".hostApplicationMetric: has 2000 rows"),
        ("nodeMetric.numaUsages", [{}] * 2_000, ".nodeMetric.numaUsages: has 2000 rows"),
        ("nodeMetric.aggregatedNodeUsages", [{}] * 100, ".nodeMetric.aggregatedNodeUsages: has 100 rows"),
        (
            "nodeMetric.aggregatedSystemUsages.0.usage",
            {f"p{number}": {} for number in range(100)},
            ".nodeMetric.aggregatedSystemUsages[0].usage: has 100 statistics",
        ),
    ],
)
def test_more_than_a_node_can_have_is_not_read(path: str, value: Any, told: str) -> None:
    """Reading a million empty rows would keep the scheduler for a second, as often as an agent's token writes them."""
    with pytest.raises(ConfigurationFault) as raised:
        node_metric(metric(changed(path, value)))
    assert str(raised.value).startswith(f"NodeMetric n: status{told}")


def test_a_status_that_is_no_object() -> None:
    """The object itself is named."""
    with pytest.raises(ConfigurationFault, match=r"^NodeMetric n: status: is 'x' \(expected an object"):
        node_metric(objects.NodeMetric(objects.Metadata(name="n"), None, "x"))


def test_writing() -> None:
    """Koordinator's field names, Kubernetes' quantities, Go's durations, rows in order."""
    told = status(READ, STAMP)
    assert told["updateTime"] == STAMP
    assert told["nodeMetric"]["nodeUsage"] == amounts("1500m", str(2 << 30))
    assert told["nodeMetric"]["aggregatedSystemUsages"] == [
        {"usage": {"p50": amounts("100m", "1048576")}, "duration": "30m0s"}
    ]
    assert told["nodeMetric"]["numaUsages"][0]["numaNodeID"] == 1
    assert told["podsMetric"] == [
        {"namespace": "default", "name": "batch", "podUsage": amounts("100m", "1000"), "priority": "", "qos": ""},
        {
            "namespace": "default",
            "name": "web",
            "podUsage": amounts("1", "1073741824"),
            "priority": "koord-prod",
            "qos": "LS",
        },
    ]
    assert told["hostApplicationMetric"] == [
        {"name": "nginx", "usage": amounts("10m", "5"), "priority": "koord-mid", "qos": "LS"}
    ]
    assert told["prodPeakMetric"] == {"resource": amounts("2500m", str(3 << 30))}


def test_what_is_not_known_any_more_is_removed() -> None:
    """A merge patch with null leaves nothing old behind."""
    stored = merge_patch(status(READ, STAMP), status(NodeMetric(node=Usage(1, 1)), STAMP))
    assert stored == {
        "updateTime": STAMP,
        "nodeMetric": {
            "nodeUsage": amounts("1m", "1"),
            "aggregatedNodeUsages": [],
            "aggregatedSystemUsages": [],
            "numaUsages": [],
        },
        "podsMetric": [],
        "hostApplicationMetric": [],
    }


@pytest.mark.parametrize("value", [READ, NodeMetric()], ids=["full", "empty"])
def test_the_definition_takes_what_is_written(value: NodeMetric) -> None:
    """deploy/crds: nothing refused, nothing pruned; nor of what koordlet writes."""
    (version,) = yaml.safe_load(DEFINITION.read_text())["spec"]["versions"]
    allowed = version["schema"]["openAPIV3Schema"]
    for body in (merge_patch({}, status(value, STAMP)), copy.deepcopy(WRITTEN)):
        stored = {"spec": {"metricCollectPolicy": POLICY}, "status": body}
        assert list(schema.errors(allowed, stored)) == []
        assert schema.prune(allowed, stored) == []


POLICY = {
    "aggregateDurationSeconds": 300,
    "reportIntervalSeconds": 60,
    "nodeAggregatePolicy": {"durations": ["5m0s", "10m0s"]},
    "nodeMemoryCollectPolicy": "usageWithoutPageCache",
}


def test_collect_policy() -> None:
    """As Koordinator's controller renders it; what is absent is silent."""
    source = metric(spec={"metricCollectPolicy": POLICY})
    assert msgspec.structs.astuple(collect_policy(source)) == (300.0, "usageWithoutPageCache")
    assert report_policy(source) == ReportPolicy(60.0, AggregatePolicy([GoDuration(300), GoDuration(600)]))
    for spec in (None, {}, {"metricCollectPolicy": None}, {"metricCollectPolicy": {"later": 1}}):
        assert collect_policy(metric(spec=spec)) == CollectPolicy()
        assert report_policy(metric(spec=spec)) == ReportPolicy()


@pytest.mark.parametrize(
    ("reader", "spec", "told"),
    [
        (collect_policy, [], ": is a list"),
        (report_policy, {"metricCollectPolicy": 1}, ".metricCollectPolicy: is 1"),
        (
            report_policy,
            {"metricCollectPolicy": {"reportIntervalSeconds": "0"}},
            ".metricCollectPolicy.reportIntervalSeconds: is '0'",
        ),
        (
            collect_policy,
            {"metricCollectPolicy": {"nodeMemoryCollectPolicy": "all"}},
            ".metricCollectPolicy.nodeMemoryCollectPolicy: is 'all' (write one of usageWithoutPageCache,",
        ),
    ],
)
def test_a_broken_policy_names_the_field(reader: Callable[[objects.NodeMetric], object], spec: Any, told: str) -> None:
    """Object, field, value and fix."""
    with pytest.raises(ConfigurationFault) as raised:
        reader(metric(spec=spec))
    assert str(raised.value).startswith(f"NodeMetric n: spec{told}")


usages = st.builds(Usage, st.integers(0, 10**7), st.integers(0, 10**14))
names = st.text("abc", min_size=1, max_size=3)
bands, classes = st.sampled_from(PriorityBand), st.sampled_from(QoSClass)
aggregates = st.builds(
    AggregatedUsage,
    st.integers(10, 3600).map(float),
    st.dictionaries(st.sampled_from(["avg", "p50", "p90", "p95", "p99"]), usages),
)
metrics = st.builds(
    NodeMetric,
    updated_seconds=st.just(AT),
    node=st.none() | usages,
    system=st.none() | usages,
    pods=st.lists(st.builds(PodMetric, names, names, usages, bands, classes), unique_by=lambda pod: pod.key).map(
        lambda found: tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name)))
    ),
    host_applications=st.lists(
        st.builds(HostApplicationMetric, names, usages, bands, classes), unique_by=lambda item: item.name
    ).map(lambda found: tuple(sorted(found, key=lambda item: item.name))),
    prod_reclaimable=st.none() | usages,
    prod_peak=st.none() | usages,
    node_aggregates=st.lists(aggregates, max_size=3).map(tuple),
    system_aggregates=st.lists(aggregates, max_size=3).map(tuple),
    numa=st.lists(st.builds(NumaUsage, st.integers(0, 7), usages, usages), max_size=2).map(tuple),
)


@given(metrics)
def test_what_is_written_is_read(value: NodeMetric) -> None:
    """Nothing is lost or rounded on the way through the API server."""
    stored = msgspec.json.decode(msgspec.json.encode(merge_patch({}, status(value, STAMP))))
    assert node_metric(metric(stored)) == value
