"""The two NodeMetrics say the same parts, one cautiously, one as Koordinator does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.observe.node_metric import live_metric, reported_metric
from agent.core.observe.prediction import Prediction
from agent.core.observe.usage import Averages, NodeUsage, Statistics
from model.nodemetric import AggregatedUsage, HostApplicationMetric, NumaUsage, PodMetric
from model.qos import PriorityBand, QoSClass
from model.report import Usage
from model.strategy import HostApplication

NGINX = HostApplication("nginx", "/host/nginx", "LS", "koord-prod")
FORESEEN = Prediction(Usage(300, 30), Usage(700, 70), ())
AGGREGATES = Statistics(
    (AggregatedUsage(300.0, {"avg": Usage(1, 1)}),), (AggregatedUsage(300.0, {"avg": Usage(2, 2)}),)
)


@pytest.fixture
def usage(build: Any) -> NodeUsage:
    """Live and aggregate averages that differ: the node is calming down, `web` is heating up."""
    mixed: NodeUsage = build.usage(
        node=build.averages(700, 100, live=600, aggregate=900),
        unlisted_system=build.averages(100, 50, live=300, aggregate=150),
        pods={"uid-web": build.averages(10, 7, live=40, aggregate=20), "uid-batch": build.averages(5, 1)},
        host_applications={"nginx": build.averages(8, 3, live=9, aggregate=6)},
        numa={1: build.averages(0, 25, aggregate=600), 0: build.averages(0, 75, aggregate=300)},
    )
    return mixed


def test_live_is_cautious(build: Any, usage: NodeUsage) -> None:
    """The larger of both averages; pods without measure and host applications nobody named are left out."""
    metric = live_metric(usage, [build.pod("web"), build.pod("unmeasured"), build.batch()], [NGINX], FORESEEN)
    assert metric is not None
    assert metric.updated_seconds == usage.at_seconds
    assert (metric.node, metric.system) == (Usage(900, 100), Usage(300, 50))
    assert metric.pods == (
        PodMetric("default", "web", Usage(40, 7), PriorityBand.PROD, QoSClass.LS),
        PodMetric("default", "batch", Usage(5, 1), PriorityBand.BATCH, QoSClass.BE),
    )
    assert metric.host_applications == (HostApplicationMetric("nginx", Usage(9, 3), PriorityBand.PROD, QoSClass.LS),)
    assert (metric.prod_reclaimable, metric.prod_peak) == (Usage(300, 30), Usage(700, 70))
    unpredicted = live_metric(usage, [], [], None)
    assert unpredicted is not None and unpredicted.prod_reclaimable is None and not unpredicted.host_applications


def test_reported_are_averages(build: Any, usage: NodeUsage) -> None:
    """Averages over the aggregate window."""
    pods = [build.pod("web"), build.batch()]
    metric = reported_metric(usage, AGGREGATES, pods, [NGINX], FORESEEN)
    assert metric is not None
    assert (metric.node, metric.system) == (Usage(900, 100), Usage(150, 50))
    assert [(pod.key, pod.usage.cpu_millis) for pod in metric.pods] == [("default/web", 20), ("default/batch", 5)]
    assert metric.host_applications[0].usage == Usage(6, 3)
    assert (metric.node_aggregates, metric.system_aggregates) == (AGGREGATES.node, AGGREGATES.system)
    assert metric.prod_peak == Usage(700, 70)


def test_system_use_is_shared_out_over_numa_nodes(build: Any, usage: NodeUsage) -> None:
    """150m and 50 bytes of system, nodes at 300 : 600 CPU and 75 : 25 bytes → 50m and 37, 100m and 12."""
    metric = reported_metric(usage, AGGREGATES, [], [], None)
    assert metric is not None
    assert metric.numa == (
        NumaUsage(0, Usage(300, 75), Usage(50, 37)),
        NumaUsage(1, Usage(600, 25), Usage(100, 12)),
    )
    idle = reported_metric(build.usage(numa={0: build.averages()}), AGGREGATES, [], [], None)
    assert idle is not None and idle.numa == (NumaUsage(0, Usage(), Usage()),)


def test_unknown_words_of_a_host_application_are_none(usage: NodeUsage) -> None:
    """A class or band nobody knows is not an error of this node."""
    odd = HostApplication("nginx", "/host/nginx", "LSX", "gold")
    metric = live_metric(usage, [], [odd], None)
    assert metric is not None
    assert metric.host_applications == (HostApplicationMetric("nginx", Usage(9, 3)),)


def test_no_usage_is_no_metric() -> None:
    """Before the node was measured there is nothing to say."""
    assert live_metric(None, [], [NGINX], FORESEEN) is None
    assert reported_metric(None, AGGREGATES, [], [], FORESEEN) is None


AMOUNT = st.integers(0, 1 << 50)
USAGE = st.builds(Usage, AMOUNT, AMOUNT)


@given(st.dictionaries(st.integers(0, 9), USAGE, max_size=4), USAGE, USAGE)
def test_numa_nodes_never_exceed_the_node(measured: dict[int, Usage], node: Usage, system: Usage) -> None:
    """Nor the system's parts the system or their own NUMA node; what comes to less is told as it was measured."""
    found = reported_metric(told(measured, node, system), Statistics(), [], [], None)
    assert found is not None and [row.numa_id for row in found.numa] == sorted(measured)
    for kind in ("cpu_millis", "memory_bytes"):
        owns, systems = ([getattr(getattr(row, of), kind) for row in found.numa] for of in ("node", "system"))
        theirs, whole = [getattr(measured[id_], kind) for id_ in sorted(measured)], getattr(node, kind)
        assert sum(owns) <= whole and sum(systems) <= getattr(system, kind)
        assert all(0 <= part <= own for part, own in zip(systems, owns, strict=True))
        assert owns == theirs or (sum(theirs) > whole and whole - sum(owns) < max(len(owns), 1))


def told(measured: dict[int, Usage], node: Usage, system: Usage) -> NodeUsage:
    """Averages that are all alike."""
    whole, unlisted = Averages(node, node, node), Averages(system, system, system)
    return NodeUsage(
        at_seconds=1.0,
        node=whole,
        system=unlisted,
        unlisted_system=unlisted,
        online=unlisted,
        best_effort=unlisted,
        pods={},
        live_seconds=10.0,
        live_span_seconds=10.0,
        numa={id_: Averages(usage, usage, usage) for id_, usage in measured.items()},
    )
