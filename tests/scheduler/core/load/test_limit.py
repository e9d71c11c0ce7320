"""The load filter refuses what would take a node over its limits, with Koordinator's words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from load_builders import aggregate, arrays_of, assigned, load, measured, nodes, prod_class, usage
from scheduler_builders import pod

from model.loadlimits import LoadLimits, Statistic, StatisticKind, UsageLimits
from model.pod.colocation import LoadTerms
from model.qos import PriorityBand
from model.resources import CPU, MEMORY
from scheduler.core.load.limit import UNLIMITED, load_room
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.load.score import load_scores
from scheduler.core.snapshot.podclass import class_of

P1 = "default/p1"
CPU_65 = LoadPolicy(limits=UsageLimits(65))
BOTH = LoadPolicy(limits=UsageLimits(65, 95))
PROD_55 = LoadPolicy(limits=UsageLimits(65), prod_limits=UsageLimits(55))
P95_60 = LoadPolicy(
    limits=UsageLimits(99), aggregated_limits=UsageLimits(60), limit_statistic=Statistic(StatisticKind.P95)
)
REFUSE_EXPIRED = LoadPolicy(limits=UsageLimits(65), filter_expired=True)
PASS_EXPIRED = LoadPolicy(limits=UsageLimits(65), filter_expired=True, place_when_expired=True)

# policy, measured CPUs, GiB and more; refusal (empty: none), how many more 16-CPU pods
CASES: dict[str, tuple[LoadPolicy, Any, list[Any], str, int]] = {
    "room for three": (CPU_65, measured(20, 10), [], "", 3),
    "up to the limit, rounded": (CPU_65, measured(49.2, 10), [], "", 1),
    "rounded over the limit": (CPU_65, measured(49.28, 10), [], "node(s) cpu usage exceed threshold", 0),
    "another pod on its way counts": (CPU_65, measured(40, 10), [assigned()], "node(s) cpu usage exceed threshold", 0),
    "memory": (BOTH, measured(0, 500), [], "node(s) memory usage exceed threshold", 0),
    "both: CPU is told": (BOTH, measured(90, 500), [], "node(s) cpu usage exceed threshold", 0),
    "never measured": (CPU_65, None, [], "", UNLIMITED),
    "stale counts all the same, as shipped": (CPU_65, measured(90, at=0.0), [], "node(s) cpu usage exceed threshold", 0),
    "stale is refused": (REFUSE_EXPIRED, measured(0, at=0.0), [], "node(s) nodeMetric expired", 0),
    "stale passes": (PASS_EXPIRED, measured(90, at=0.0), [], "", UNLIMITED),
    "fresh is limited where stale passes": (PASS_EXPIRED, measured(90), [], "node(s) cpu usage exceed threshold", 0),
    "prod pods by what prod pods use": (PROD_55, measured(90, 10, {P1: usage(13, 1)}, prods=[P1]), [assigned(prod=True)], "", 2),
    "prod pods use too much": (PROD_55, measured(50, 10, {P1: usage(50, 1)}, prods=[P1]), [assigned(prod=True)], "node(s) cpu usage exceed threshold", 0),
    "a statistic": (P95_60, measured(90, aggregates=(aggregate(300, p95=usage(20)),)), [], "", 2),
    "a statistic that is too high": (P95_60, measured(0, aggregates=(aggregate(300, p95=usage(50)),)), [], "node(s) cpu aggregated usage exceed threshold", 0),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "metric", "pods", "refusal", "most"), CASES.values(), ids=CASES.keys())
def test_limit(policy: LoadPolicy, metric: Any, pods: Any, refusal: str, most: int) -> None:
    room = load_room(arrays_of(load(metric, None, pods, policy), policy=policy), nodes(), prod_class())
    assert room is not None
    told = room.reasons[room.reason_of[0]] if room.reason_of[0] >= 0 else ""
    assert (told, room.most[0]) == (refusal, most)


def test_other_pods_are_held_to_all_use_where_prod_pods_have_limits() -> None:
    policy = PROD_55
    drawn = arrays_of(load(measured(60, 10), None, [], policy), policy=policy)
    prod, free = prod_class(), prod_class(band=PriorityBand.FREE)
    found = [load_room(drawn, nodes(), one) for one in (prod, free)]
    assert [room.most.tolist() for room in found if room is not None] == [[3], [0]]


UNLIMITED_CLASSES: dict[str, tuple[LoadPolicy, dict[str, Any]]] = {
    "no limit is set": (LoadPolicy(), {}),
    "a DaemonSet's pod": (CPU_65, {"daemon": True}),
}


@pytest.mark.parametrize(("policy", "fields"), UNLIMITED_CLASSES.values(), ids=UNLIMITED_CLASSES.keys())
def test_nothing_is_computed_where_nothing_is_limited(policy: LoadPolicy, fields: dict[str, Any]) -> None:
    drawn = arrays_of(load(measured(95), None, [], policy), policy=policy)
    assert load_room(drawn, nodes(), prod_class(**fields)) is None


def test_a_pod_that_asks_for_more_than_any_machine_has_is_told_so() -> None:
    """And multiplies that by a factor of its own: the pod finds no room, and the arithmetic stays inside int64."""
    policy = LoadPolicy(limits=UsageLimits(65, 95), custom_estimates=True)
    drawn = arrays_of(load(measured(1, 1), None, [], policy), policy=policy)
    asking = {CPU: 1 << 53, MEMORY: 1 << 53}
    greedy = class_of(pod(requests=asking, band=PriorityBand.PROD, load=LoadTerms(((CPU, 1000), (MEMORY, 1000)))))
    room = load_room(drawn, nodes(), greedy)
    assert room is not None
    assert room.most.tolist() == [0]
    assert load_scores(drawn, nodes(), greedy).tolist() == [0]


def test_without_a_picture() -> None:
    assert load_room(None, nodes(), prod_class()) is None


def test_a_resource_the_node_does_not_have_has_no_limit() -> None:
    drawn = arrays_of(load(measured(1, 1), None, [], BOTH), policy=BOTH)
    room = load_room(drawn, nodes(cpus=0), prod_class())
    assert room is not None and room.reason_of.tolist() == [-1]


def test_each_node_has_its_own_limits() -> None:
    own = LoadLimits(UsageLimits(90))
    drawn = arrays_of(load(measured(60), None, [], CPU_65), load(measured(60), None, [], CPU_65, own), policy=CPU_65)
    room = load_room(drawn, nodes(2), prod_class())
    assert room is not None and room.most.tolist() == [0, 1]


@given(st.integers(0, 96_000), st.integers(1, 100), st.integers(1, 40_000))
def test_most_is_as_many_as_pass_one_by_one(used: int, percent: int, request: int) -> None:
    """Putting a pod and asking again comes to the same as asking once how many fit."""
    policy = LoadPolicy(limits=UsageLimits(percent))
    drawn = arrays_of(load(measured(used / 1000), None, [], policy), policy=policy)
    one = prod_class(request / 1000, 1)
    room = load_room(drawn, nodes(), one)
    assert room is not None
    most = int(room.most[0])
    drawn.put(0, one, most)
    after = load_room(drawn, nodes(), one)
    assert after is not None and after.reason_of[0] >= 0
    if most:
        drawn.put(0, one, -1)
        before = load_room(drawn, nodes(), one)
        assert before is not None and before.most.tolist() == [1]


def test_a_pod_counts_by_its_memory_too() -> None:
    drawn = arrays_of(load(measured(), None, [], BOTH), policy=BOTH)
    room = load_room(drawn, nodes(gib=100), prod_class(1, 40))
    assert room is not None and room.most.tolist() == [3]
