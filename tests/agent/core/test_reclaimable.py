"""batch-cpu and batch-memory by the usage policy, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.core.reclaimable import reclaimable
from model.pod import PodPhase
from model.qos import PriorityBand, QoSClass
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY
from model.strategy import ColocationStrategy

STRATEGY = ColocationStrategy()
GIB = 1 << 30


def lent(build: Any, pods: Any, measured: Any, *, node: Any = None, **usage: Any) -> dict[str, Any]:
    decisions = reclaimable(node or build.node(), pods, build.usage(measured, **usage), STRATEGY, 100.0)
    return {d.name: d for d in decisions}


def test_the_formula(build: Any, terms: Any) -> None:
    """2000 - 40 % - system 100 - used 400 = 700m; 8Gi - 35 % - 0.5Gi - 1Gi of memory."""
    web = build.pod(cpu=1200, memory=2 * GIB)
    found = lent(build, (web,), {web.uid: build.averages(400, GIB)})
    assert found[BATCH_CPU].value == 700
    assert terms(found[BATCH_CPU]) == {
        "capacity": 2000,
        "safety margin": -800,
        "system used": -100,
        "high-priority used": -400,
    }
    assert found[BATCH_MEMORY].value == 8 * GIB - int(8 * GIB * 35 / 100) - GIB // 2 - GIB
    assert found[BATCH_CPU].reason is Reason.COMPUTED


CASES: dict[str, tuple[dict[str, Any], dict[str, int], int]] = {
    # pod builder arguments, averages of the pod (None: not measured), batch-cpu
    "batch pods use what is lent": ({"qos": QoSClass.BE, "band": PriorityBand.BATCH}, {"cpu": 400}, 1100),
    "free pods too": ({"qos": QoSClass.BE, "band": PriorityBand.FREE}, {"cpu": 400}, 1100),
    "a mid pod is high priority": ({"band": PriorityBand.MID}, {"cpu": 400}, 700),
    "a BE pod of the prod band is high priority": ({"qos": QoSClass.BE, "band": PriorityBand.PROD}, {"cpu": 400}, 700),
    "LSE keeps its request": ({"qos": QoSClass.LSE, "cpu": 900}, {"cpu": 400}, 200),
    "LSR gives what it does not use": ({"qos": QoSClass.LSR, "cpu": 900}, {"cpu": 400}, 700),
    "finished pods hold nothing": ({"cpu": 900, "phase": PodPhase.SUCCEEDED}, {"cpu": 400}, 1100),
    "a surge counts before the window does": ({"cpu": 900}, {"cpu": 400, "live": 800, "aggregate": 300}, 300),
    "calm waits for the window": ({"cpu": 900}, {"cpu": 0, "live": 0, "aggregate": 600}, 500),
    "never below zero": ({"cpu": 900}, {"cpu": 1900}, 0),
}


@pytest.mark.parametrize(("pod", "averages", "expected"), CASES.values(), ids=CASES.keys())
def test_high_priority_use(build: Any, pod: dict[str, Any], averages: dict[str, int], expected: int) -> None:
    """Who counts, and with what."""
    one = build.pod(**pod)
    assert lent(build, (one,), {one.uid: build.averages(**averages)})[BATCH_CPU].value == expected


def test_a_pod_without_metric_counts_with_its_request(build: Any, terms: Any) -> None:
    """Not knowing means lending less."""
    found = lent(build, (build.pod(cpu=900), build.pod("starting", cpu=100, phase=PodPhase.PENDING)), {})
    assert found[BATCH_CPU].value == 100
    assert terms(found[BATCH_CPU])["high-priority not measured"] == -1000


def test_reserved_counts_where_it_is_larger(build: Any, terms: Any) -> None:
    """max(system used, reserved), named after whichever it is."""
    found = lent(build, (), {}, node=build.node(reserved=300))
    assert terms(found[BATCH_CPU])["reserved"] == -300 and found[BATCH_CPU].value == 900


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"listed": None}, Reason.PODS_UNKNOWN),
        ({"node": None}, Reason.PODS_UNKNOWN),
        ({"usage": None}, Reason.NODE_METRICS_MISSING),
        ({"strategy": ColocationStrategy(enable=False)}, Reason.LENDING_DISABLED),
        ({"listed_age_seconds": 901.0}, Reason.PODS_STALE),
    ],
)
def test_missing_facts_lend_nothing(build: Any, change: dict[str, Any], reason: Reason) -> None:
    """Ignorance is zero with a reason, never an old number."""
    arguments = {"node": build.node(), "listed": (), "usage": build.usage(), "strategy": STRATEGY, "now": 100.0}
    for decision in reclaimable(**{**arguments, **change}):
        assert (decision.value, decision.reason) == (0, reason)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(used=st.integers(0, 4000), more=st.integers(0, 4000), system=st.integers(0, 4000))
def test_more_use_never_lends_more(build: Any, used: int, more: int, system: int) -> None:
    """Monotone, and never above capacity - margin - use."""
    web = build.pod(cpu=1200)
    parts = {"unlisted_system": build.averages(system)}
    low = lent(build, (web,), {web.uid: build.averages(used + more)}, **parts)[BATCH_CPU].value
    high = lent(build, (web,), {web.uid: build.averages(used)}, **parts)[BATCH_CPU].value
    assert 0 <= low <= high <= max(2000 - 800 - used - system, 0)


@pytest.mark.parametrize(
    ("capacity", "pct", "margin"), [(2000, 60, 800), (5500, 65, 1924), (1000, 60, 400), (1001, 60, 400)]
)
def test_margin_rounds_as_koordinator_does(build: Any, terms: Any, capacity: int, pct: int, margin: int) -> None:
    """float64(capacity) x (float64(100 - pct) / 100), cut to an integer: 5500 at 65 % is 1924, not 1925."""
    strategy = ColocationStrategy(cpu_reclaim_threshold_pct=pct)
    found = reclaimable(build.node(capacity), (), build.usage(), strategy, 100.0)[0]
    assert terms(found)["safety margin"] == -margin
