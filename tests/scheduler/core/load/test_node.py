"""What a node is taken to use: its measurement, and what its pods will use that no measurement shows yet."""

from __future__ import annotations

from typing import Any

import pytest
from load_builders import NOW, aggregate, assigned, live, load, measured, usage

from model.loadlimits import LoadLimits, Statistic, StatisticKind, UsageLimits
from model.nodemetric import NodeMetric, PodMetric
from model.qos import PriorityBand
from model.report import BestEffortPodUsage, NodeReport, Usage
from scheduler.core.load.node import Level, NodeLoad, from_metric, from_report
from scheduler.core.load.policy import LoadPolicy

P1 = "default/p1"
P95 = LoadPolicy(score_statistic=Statistic(StatisticKind.P95))
P95_OVER_300 = LoadPolicy(score_statistic=Statistic(StatisticKind.P95, 300.0))
PROD = LoadPolicy(score_prod_usage=True)

# the NodeMetric, the agent's report, the pods there; CPUs and GiB in use
CURRENT: dict[str, tuple[Any, Any, list[Any], tuple[float, float]]] = {
    "nothing but the measurement": (measured(32, 10), None, [], (32, 10)),
    "a pod measured long ago is in there": (measured(32, 10, {P1: usage(1, 1)}), None, [assigned()], (32, 10)),
    "a pod that is not listed counts in full": (measured(32, 10), None, [assigned()], (45.6, 32.4)),
    "a pod of after the measurement": (measured(32, 10), None, [assigned(at=NOW)], (45.6, 32.4)),
    "a listed pod of within the interval counts by the rest": (
        measured(32, 10, {P1: usage(3.6, 30)}),
        None,
        [assigned(at=NOW - 60)],
        (42, 10),
    ),
    "assigned just one interval before": (measured(32, 10, {P1: usage()}), None, [assigned(at=NOW - 70)], (32, 10)),
    "a shorter interval": (measured(32, 10, {P1: usage()}, interval=20.0), None, [assigned(at=NOW - 60)], (32, 10)),
    "an estimate that stands beyond the measurement": (
        measured(32, 10, {P1: usage(3.6, 2.4)}),
        None,
        [assigned(until_seconds=NOW)],
        (42, 30),
    ),
    "an estimate that stood until before": (measured(32, 10, {P1: usage()}), None, [assigned(until_seconds=NOW - 20)], (32, 10)),
    "a fresher report": (measured(32, 10), live(40, 20), [], (40, 20)),
    "a report that is older": (measured(32, 10), live(40, 20, at=NOW - 11), [], (32, 10)),
    "no NodeMetric at all": (None, live(40, 20), [], (40, 20)),
    "an online pod is not listed in a report, but in there": (None, live(40, 20), [assigned()], (40, 20)),
    "a best-effort pod that a report does not list": (None, live(40, 20), [assigned(best_effort=True)], (53.6, 42.4)),
    "a best-effort pod that a report lists": (None, live(40, 20, {P1: usage(1, 1)}), [assigned(best_effort=True)], (40, 20)),
    "an online pod of a moment ago, measured by the NodeMetric": (
        measured(32, 10, {P1: usage(3.6, 2.4)}),
        live(40, 20),
        [assigned(at=NOW - 5)],
        (50, 40),
    ),
    "an online pod of a moment ago that nobody measured": (None, live(40, 20), [assigned(at=NOW - 5)], (53.6, 42.4)),
}  # fmt: skip


@pytest.mark.parametrize(("metric", "report", "pods", "wanted"), CURRENT.values(), ids=CURRENT.keys())
def test_current(metric: Any, report: Any, pods: Any, wanted: tuple[float, float]) -> None:
    found = load(metric, report, pods)
    assert found.scored is not None
    assert found.scored.usage == usage(*wanted)
    assert found.limited == found.scored


def test_unmeasured() -> None:
    assert load(None, None, [assigned()]) == NodeLoad()


AGGREGATED: dict[str, tuple[Any, Any, list[Any], tuple[float, float]]] = {
    "the longest of the kind": (
        P95,
        measured(1, 1, aggregates=(aggregate(300, p95=usage(30, 8)), aggregate(900, p95=usage(32, 10)))),
        [],
        (32, 10),
    ),
    "the one of the duration": (
        P95_OVER_300,
        measured(1, 1, aggregates=(aggregate(300, p95=usage(30, 8)), aggregate(900, p95=usage(32, 10)))),
        [],
        (30, 8),
    ),
    "a longer one of another kind": (
        P95,
        measured(1, 1, aggregates=(aggregate(300, p95=usage(30, 8)), aggregate(900, avg=usage(32, 10)))),
        [],
        (30, 8),
    ),
    "none of the kind: the newest usage": (P95, measured(7, 5), [assigned()], (20.6, 27.4)),
    "none of the duration: estimates alone": (
        P95_OVER_300,
        measured(7, 5, {P1: usage(1, 1)}, aggregates=(aggregate(900, p95=usage(32, 10)),)),
        [assigned()],
        (13.6, 22.4),
    ),
    "pods it does not show are added": (
        P95,
        measured(1, 1, aggregates=(aggregate(300, p95=usage(30, 8)),)),
        [assigned()],
        (43.6, 30.4),
    ),
}


@pytest.mark.parametrize(("policy", "metric", "pods", "wanted"), AGGREGATED.values(), ids=AGGREGATED.keys())
def test_aggregated(policy: Any, metric: Any, pods: Any, wanted: tuple[float, float]) -> None:
    """A fresher report has no statistics, so it does not replace them."""
    found = load(metric, live(90, 90), pods, policy)
    assert found.scored == Level(usage(*wanted), NOW - 10)
    assert found.limited == Level(usage(90, 90), NOW - 1)


PRODS: dict[str, tuple[Any, Any, list[Any], tuple[float, float]]] = {
    "what prod pods use": (PROD, measured(50, 50, {P1: usage(3, 2)}, prods=[P1]), [assigned(prod=True)], (3, 2)),
    "other pods' use is not": (PROD, measured(50, 50, {P1: usage(3, 2)}), [assigned()], (0, 0)),
    "reported as prod, but gone": (PROD, measured(50, 50, {P1: usage(3, 2)}, prods=[P1]), [], (0, 0)),
    "reported as something else counts by its estimate": (PROD, measured(50, 50, {P1: usage(3, 2)}), [assigned(prod=True)], (13.6, 22.4)),
    "not reported yet": (PROD, measured(50, 50), [assigned(prod=True)], (13.6, 22.4)),
    "reported a moment ago": (PROD, measured(50, 50, {P1: usage(3.6, 2.4)}, prods=[P1]), [assigned(prod=True, at=NOW)], (13.6, 22.4)),
    "with the node's own": (
        LoadPolicy(score_prod_usage=True, prod_includes_system=True),
        measured(50, 50, {P1: usage(3, 2)}, prods=[P1], system=usage(1, 1)),
        [assigned(prod=True)],
        (4, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "metric", "pods", "wanted"), PRODS.values(), ids=PRODS.keys())
def test_prod(policy: Any, metric: Any, pods: Any, wanted: tuple[float, float]) -> None:
    assert load(metric, None, pods, policy).prod == Level(usage(*wanted), NOW - 10)


def test_prod_use_is_not_computed_where_nobody_asks() -> None:
    assert load(measured(50, 50), None, [assigned(prod=True)]).prod is None


LIMITS: dict[str, tuple[LoadPolicy, LoadLimits, LoadLimits]] = {
    "the settings": (LoadPolicy(limits=UsageLimits(65, 95)), LoadLimits(), LoadLimits(UsageLimits(65, 95))),
    "the node's own": (
        LoadPolicy(limits=UsageLimits(65, 95), prod_limits=UsageLimits(50)),
        LoadLimits(UsageLimits(80)),
        LoadLimits(UsageLimits(80), UsageLimits(50)),
    ),
    "a statistic of the settings": (
        LoadPolicy(aggregated_limits=UsageLimits(60), limit_statistic=Statistic(StatisticKind.P95)),
        LoadLimits(UsageLimits(80)),
        LoadLimits(UsageLimits(80), UsageLimits(), UsageLimits(60), Statistic(StatisticKind.P95)),
    ),
    "a statistic of the node": (
        LoadPolicy(aggregated_limits=UsageLimits(60), limit_statistic=Statistic(StatisticKind.P95)),
        LoadLimits(aggregated=UsageLimits(70), statistic=Statistic(StatisticKind.AVG)),
        LoadLimits(aggregated=UsageLimits(70), statistic=Statistic(StatisticKind.AVG)),
    ),
    "limits of a statistic without a kind": (LoadPolicy(aggregated_limits=UsageLimits(60)), LoadLimits(), LoadLimits()),
}


@pytest.mark.parametrize(("policy", "own", "wanted"), LIMITS.values(), ids=LIMITS.keys())
def test_limits(policy: LoadPolicy, own: LoadLimits, wanted: LoadLimits) -> None:
    assert load(measured(), None, [], policy, own).limits == wanted


def test_from_metric() -> None:
    pods = (
        PodMetric("default", "p1", Usage(1, 2), PriorityBand.PROD),
        PodMetric("default", "p2", Usage(3, 4), PriorityBand.BATCH),
    )
    found = from_metric(NodeMetric(90.0, Usage(9, 9), Usage(1, 1), pods), 100.0)
    assert found is not None
    assert (found.seconds, found.interval_seconds, found.node, found.system) == (90.0, 60.0, Usage(9, 9), Usage(1, 1))
    assert found.pods == {"default/p1": Usage(1, 2), "default/p2": Usage(3, 4)}
    assert found.prod_pods == {"default/p1"}


@pytest.mark.parametrize("metric", [NodeMetric(None, Usage(1, 1)), NodeMetric(90.0, None)])
def test_a_metric_without_time_or_usage_says_nothing(metric: NodeMetric) -> None:
    assert from_metric(metric, 100.0) is None


def test_the_future_counts_as_now() -> None:
    """A clock that is ahead neither hides pods placed since nor keeps the measurement from ageing."""
    metric = from_metric(NodeMetric(500.0, Usage(1, 1)), 100.0)
    report = NodeReport(
        500.0, Usage(1, 1), Usage(), Usage(), Usage(), pods=(BestEffortPodUsage("n", "p", "u", Usage(2, 2)),)
    )
    found = from_report(report, 100.0, LoadPolicy())
    assert metric is not None
    assert (metric.seconds, found.seconds, found.pods) == (100.0, 100.0, {"n/p": Usage(2, 2)})
