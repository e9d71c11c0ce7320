"""Loads keep what was measured and who is there; arrays show it and nothing older."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from load_builders import NOW, prod_pod, usage

from model.loadlimits import LoadLimits, UsageLimits
from model.nodemetric import NodeMetric, PodMetric
from model.pod.pod import Pod
from model.qos import PriorityBand
from model.report import NodeReport, Usage
from scheduler.cache.loads import Loads
from scheduler.core.load.arrays import LoadArrays
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.snapshot.podclass import class_of

NAMES = ("n1", "n2")
POD = usage(13.6, 22.4)
POLICY = LoadPolicy()


def metric(cpus: float = 0, *pods: str, at: float = NOW - 10) -> NodeMetric:
    listed = tuple(PodMetric("default", name, usage(1, 1), PriorityBand.PROD) for name in pods)
    return NodeMetric(at, usage(cpus), usage(), listed)


def report(cpus: float, at: float = NOW - 1) -> NodeReport:
    return NodeReport(at, usage(cpus), Usage(), Usage(), Usage())


def put(loads: Loads, one: Pod, node: str = "n1", now: float = NOW) -> None:
    loads.put(one, class_of(one), node, now)


def millis(loads: Loads, now: float = NOW) -> list[int]:
    """CPU in use by node."""
    drawn = loads.arrays(NAMES, now)
    assert drawn is not None
    return [int(used) for used in drawn.scored.used[:, 0]]


def measured(policy: LoadPolicy = POLICY) -> Loads:
    """n1 uses 10 CPUs, n2 20."""
    loads = Loads(policy)
    loads.metric("n1", metric(10), NOW)
    loads.metric("n2", metric(20), NOW)
    return loads


def test_nothing_measured() -> None:
    loads = Loads(LoadPolicy())
    put(loads, prod_pod())
    assert loads.arrays(NAMES, NOW) is None


def test_measured() -> None:
    assert millis(measured()) == [10_000, 20_000]


def test_a_newer_metric_replaces_the_older() -> None:
    loads = measured()
    millis(loads)
    loads.metric("n2", metric(30), NOW)
    assert millis(loads) == [10_000, 30_000]


def test_the_fresher_of_metric_and_report_counts() -> None:
    loads = measured()
    loads.report("n1", report(11), NOW)
    loads.report("n2", report(21, NOW - 60), NOW)
    assert millis(loads) == [11_000, 20_000]


def test_a_metric_that_is_deleted() -> None:
    """The report is what is left; without one the node was never measured."""
    loads = measured()
    loads.report("n1", report(11, NOW - 60), NOW)
    millis(loads)
    loads.metric("n1", None, NOW)
    loads.metric("n2", None, NOW)
    drawn = loads.arrays(NAMES, NOW)
    assert drawn is not None
    assert drawn.scored.used[:, 0].tolist() == [11_000, 0]
    assert drawn.scored.seconds[1] == float("-inf")


def test_a_pod_on_its_way_counts_until_it_is_measured() -> None:
    loads = measured()
    put(loads, prod_pod())
    assert millis(loads) == [10_000 + POD.cpu_millis, 20_000]
    loads.metric("n1", metric(12, "p1", at=NOW + 100), NOW + 100)
    assert millis(loads, NOW + 100) == [12_000, 20_000]


def test_a_pod_that_was_not_bound() -> None:
    loads = measured()
    put(loads, prod_pod())
    millis(loads)
    loads.remove("uid-p1")
    loads.remove("uid-p1")
    assert millis(loads) == [10_000, 20_000]


def test_a_pod_that_went_elsewhere() -> None:
    loads = measured()
    put(loads, prod_pod(), "n1")
    put(loads, prod_pod(), "n2")
    assert millis(loads) == [10_000, 20_000 + POD.cpu_millis]


def test_the_time_of_binding_is_the_api_servers_word_and_ours_before() -> None:
    """Told again without a time, the first time stands; told a time in the future, it is now."""
    loads = Loads(LoadPolicy())
    loads.metric("n1", metric(10, "p1", at=NOW), NOW)
    put(loads, prod_pod(), now=NOW - 100)
    put(loads, prod_pod(), now=NOW)
    assert millis(loads) == [10_000, 0]
    put(loads, prod_pod(scheduled_seconds=NOW - 30))
    assert millis(loads)[0] > 10_000
    put(loads, prod_pod(scheduled_seconds=NOW + 9999), now=NOW)
    loads.metric("n1", metric(10, "p1", at=NOW + 61), NOW + 61)
    assert millis(loads, NOW + 61) == [10_000, 0]


def test_limits_of_a_node() -> None:
    loads = measured(LoadPolicy(limits=UsageLimits(65)))
    loads.limits("n2", LoadLimits(UsageLimits(80)))
    drawn = loads.arrays(NAMES, NOW)
    assert drawn is not None and drawn.limits.usage.tolist() == [[65, 0], [80, 0]]
    loads.limits("n2", LoadLimits())
    drawn = loads.arrays(NAMES, NOW)
    assert drawn is not None and drawn.limits.usage.tolist() == [[65, 0], [65, 0]]


def test_a_node_that_is_gone() -> None:
    loads = measured()
    put(loads, prod_pod(), "n2")
    loads.forget("n2")
    loads.forget("never seen")
    assert millis(loads) == [10_000, 0]
    loads.metric("n2", metric(5), NOW)
    assert millis(loads) == [10_000, 5_000 + POD.cpu_millis]


def test_what_a_turn_puts_stays_in_its_picture() -> None:
    loads = measured()
    drawn = loads.arrays(NAMES, NOW)
    assert drawn is not None
    drawn.put(0, class_of(prod_pod()))
    assert millis(loads) == [10_000, 20_000]


def test_a_clock_that_is_ahead() -> None:
    """A metric from the future is of now: it expires, and a pod placed later is not taken to be in it."""
    loads = Loads(LoadPolicy())
    loads.metric("n1", metric(10, at=NOW + 10_000), NOW)
    put(loads, prod_pod(), now=NOW + 1)
    assert millis(loads, NOW + 1) == [10_000 + POD.cpu_millis, 0]
    drawn = loads.arrays(NAMES, NOW + 300)
    assert drawn is not None and drawn.expired(drawn.scored).tolist() == [True, False]


def expired(loads: Loads, now: float = NOW) -> list[bool]:
    """By node, of what limits count."""
    drawn = loads.arrays(NAMES, now)
    assert drawn is not None
    return [bool(row) for row in drawn.copy().expired(drawn.limited)]


def test_a_metric_that_says_nothing_counts_as_expired() -> None:
    """Never filled, or filled without the node's use; where there is no NodeMetric nothing expires."""
    loads = Loads(POLICY)
    loads.metric("n1", NodeMetric(), NOW)
    assert expired(loads) == [True, False]
    loads.metric("n2", NodeMetric(NOW), NOW)
    assert expired(loads) == [True, True]
    loads.metric("n1", metric(10), NOW)
    loads.metric("n2", None, NOW)
    assert expired(loads) == [False, False]
    loads.metric("n2", NodeMetric(), NOW)
    assert expired(loads) == [False, True]
    loads.forget("n2")
    assert expired(loads) == [False, False]
    loads.metric("n1", None, NOW)
    assert loads.arrays(NAMES, NOW) is None


def test_a_report_stands_in_for_a_metric_that_says_nothing() -> None:
    """Where the agent's report is what counts; what only a NodeMetric says stays unknown."""
    policy = LoadPolicy(prod_limits=UsageLimits(50))
    loads = Loads(policy)
    loads.metric("n1", NodeMetric(), NOW)
    loads.report("n1", report(11), NOW)
    drawn = loads.arrays(NAMES, NOW)
    assert drawn is not None
    assert drawn.expired(drawn.limited).tolist() == [False, False]
    assert drawn.expired(drawn.prod).tolist() == [True, False]


STEPS = st.one_of(
    st.tuples(st.just("metric"), st.sampled_from(("n1", "n2", "n3")), st.integers(0, 90)),
    st.tuples(st.just("unfilled"), st.sampled_from(("n1", "n2", "n3")), st.just(0)),
    st.tuples(st.just("gone"), st.sampled_from(("n1", "n2", "n3")), st.just(0)),
    st.tuples(st.just("report"), st.sampled_from(("n1", "n2", "n3")), st.integers(0, 90)),
    st.tuples(st.just("put"), st.sampled_from(("n1", "n2", "n3")), st.integers(0, 3)),
    st.tuples(st.just("remove"), st.just("n1"), st.integers(0, 3)),
    st.tuples(st.just("look"), st.just("n1"), st.just(0)),
)


@given(st.lists(STEPS, max_size=30))
def test_pictures_taken_on_the_way_change_nothing(steps: list[tuple[str, str, int]]) -> None:
    """Only changed nodes are computed again; the last arrays is as if it were the first."""
    looked, fresh = Loads(LoadPolicy()), Loads(LoadPolicy())
    for index, step in enumerate(steps):
        for loads in (looked, fresh):
            apply(loads, step, NOW + index)
        if step[0] == "look":
            looked.arrays(NAMES, NOW + index)
    one, other = looked.arrays(NAMES, NOW + 99), fresh.arrays(NAMES, NOW + 99)
    assert shown(one) == shown(other)


def apply(loads: Loads, step: tuple[str, str, int], now: float) -> None:
    kind, node, number = step
    if kind == "metric":
        loads.metric(node, metric(number, "p1", at=now - 5), now)
    elif kind == "unfilled":
        loads.metric(node, NodeMetric(), now)
    elif kind == "gone":
        loads.metric(node, None, now)
    elif kind == "report":
        loads.report(node, report(number, now), now)
    elif kind == "put":
        put(loads, prod_pod(name=f"p{number}", uid=f"uid-p{number}"), node, now)
    elif kind == "remove":
        loads.remove(f"uid-p{number}")


def shown(drawn: LoadArrays | None) -> Any:
    if drawn is None:
        return None
    return (drawn.scored.used.tolist(), drawn.scored.seconds.tolist(), drawn.unfilled.tolist(), drawn.now)


@pytest.mark.parametrize("names", [(), ("n2",), ("n0", "n1", "n2")])
def test_other_nodes(names: tuple[str, ...]) -> None:
    """Rows follow the names that are asked for, whatever was asked before."""
    loads = measured()
    millis(loads)
    drawn = loads.arrays(names, NOW)
    use = {"n0": 0, "n1": 10_000, "n2": 20_000}
    assert drawn is not None and drawn.scored.used[:, 0].tolist() == [use[name] for name in names]
