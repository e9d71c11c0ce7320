"""How much each rule wants freed, and when it wants nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.evict.needs import EvictionNeed, effective_priority, measured, rules_on
from agent.core.observe.observation import Absence, CgroupSample, Missing
from agent.core.observe.usage import Averages
from model.decision import Decision, Term, Unit
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import PriorityBand, QoSClass
from model.reason import Reason
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, ResourceVector
from model.strategy import CpuLimitPolicy, EvictionStrategy
from tests.agent.core.evict.evicting import GIB, MIB, batch, known, node, online, seen, steady, usage
from tests.pods import make_pod

GONE = Missing("/x", Absence.UNREADABLE)


def need(rule: Reason, strategy: EvictionStrategy, *holdings: Any, **more: Any) -> EvictionNeed:
    """The only need of a rule, or the one of its first resource."""
    return measured(rule, known(*holdings, strategy=strategy, **more))[0]


def told(each: EvictionNeed) -> dict[str, int]:
    return {term.name: term.value for term in each.terms}


ON: dict[str, tuple[EvictionStrategy, list[Reason]]] = {
    "defaults": (EvictionStrategy(), [Reason.BE_MEMORY_EVICT]),
    "switched off": (EvictionStrategy(enable=False, cpu_threshold_pct=1, priority_threshold=1), []),
    "no percentages": (EvictionStrategy(memory_threshold_pct=None), []),
    "by priority": (
        EvictionStrategy(cpu_threshold_pct=80, priority_threshold=5999),
        [Reason.BE_MEMORY_EVICT, Reason.MEMORY_EVICT, Reason.CPU_EVICT],
    ),
    "by request": (
        EvictionStrategy(
            memory_threshold_pct=None,
            memory_allocatable_threshold_pct=100,
            memory_allocatable_lower_pct=90,
            cpu_allocatable_threshold_pct=100,
            cpu_allocatable_lower_pct=90,
            allocatable_priority_threshold=5999,
        ),
        [Reason.MEMORY_ALLOCATABLE_EVICT, Reason.CPU_ALLOCATABLE_EVICT],
    ),
    "by request without a lower share": (
        EvictionStrategy(memory_allocatable_threshold_pct=100, allocatable_priority_threshold=5999),
        [Reason.BE_MEMORY_EVICT],
    ),
    "by request without a priority": (
        EvictionStrategy(memory_allocatable_threshold_pct=100, memory_allocatable_lower_pct=90),
        [Reason.BE_MEMORY_EVICT],
    ),
    "by satisfaction": (
        EvictionStrategy(memory_threshold_pct=None, cpu_satisfaction_lower_pct=50, cpu_satisfaction_upper_pct=50),
        [Reason.BE_CPU_EVICT],
    ),
    "by satisfaction upside down": (
        EvictionStrategy(memory_threshold_pct=None, cpu_satisfaction_lower_pct=50, cpu_satisfaction_upper_pct=40),
        [],
    ),
}


@pytest.mark.parametrize(("strategy", "expected"), ON.values(), ids=ON.keys())
def test_which_rules_are_on(strategy: EvictionStrategy, expected: list[Reason]) -> None:
    """A rule whose percentages are none is off; memory comes first."""
    assert list(rules_on(strategy)) == expected


# node memory used in MiB of 10 GiB -> missing MiB
USED: dict[str, tuple[int, dict[str, Any], float]] = {
    "below": (7100, {}, 0),
    "one MiB below the threshold": (7167, {}, 0),
    "at the threshold": (7168, {}, 7168 - 6963.2),
    "above": (8192, {}, 8192 - 6963.2),
    "its own lower share": (8192, {"memory_lower_pct": 50}, 3072),
    "a lower share above the threshold": (8192, {"memory_lower_pct": 90}, 1024),
    "a threshold of 1": (8192, {"memory_threshold_pct": 1}, 8192),
}


@pytest.mark.parametrize("rule", [Reason.BE_MEMORY_EVICT, Reason.MEMORY_EVICT])
@pytest.mark.parametrize(("used", "fields", "missing"), USED.values(), ids=USED.keys())
def test_memory_in_use(rule: Reason, used: int, fields: dict[str, Any], missing: float) -> None:
    """Two below the threshold where no lower share is given; not a byte is truncated away."""
    found = need(rule, EvictionStrategy(**fields), observation=seen(used=used))
    assert abs(found.missing - missing * MIB) < 1
    assert found.hold_reason is (None if missing else Reason.WITHIN_THRESHOLD)


def test_a_part_of_a_percent_is_enough() -> None:
    """79.99 % of a large node is not 79 %: a byte above the threshold starts."""
    just = 70 * GIB + 1
    strategy = EvictionStrategy(memory_threshold_pct=70, memory_lower_pct=69)
    sample = msgspec.structs.replace(seen().node_sample, memory_used_bytes=just)
    found = need(Reason.BE_MEMORY_EVICT, strategy, node=node(100 * GIB), observation=seen(node_sample=sample))
    assert found.missing == GIB + 1
    below = msgspec.structs.replace(sample, memory_used_bytes=70 * GIB - 1)
    assert (
        need(Reason.BE_MEMORY_EVICT, strategy, node=node(100 * GIB), observation=seen(node_sample=below)).missing == 0
    )


def pods_level(used_mib: int, limit_mib: int | None, node_mib: int = 0) -> Any:
    limit = None if limit_mib is None else limit_mib * MIB
    return seen(used=node_mib, kubepods=CgroupSample(0, used_mib * MIB), kubepods_memory_limit_bytes=limit)


LEVELS: dict[str, tuple[Any, int, str]] = {
    "pods have no limit": (pods_level(9000, None), 0, "the node"),
    "pods are at their limit": (pods_level(900, 1000), 220, "all pods"),
    "the node is fuller": (pods_level(500, 1000, node_mib=9000), 9000 - 6963, "the node"),
    "both, pods by a larger share, the node by more bytes": (
        pods_level(990, 1000, node_mib=9000),
        9000 - 6963,
        "the node",
    ),
    "neither, the fuller is shown": (pods_level(600, 1000, node_mib=1000), 0, "all pods"),
}


@pytest.mark.parametrize(("look", "missing", "whose"), LEVELS.values(), ids=LEVELS.keys())
def test_the_node_or_its_pods(look: Any, missing: int, whose: str) -> None:
    """Whichever runs out first, and it says which."""
    found = need(Reason.BE_MEMORY_EVICT, EvictionStrategy(), observation=look)
    assert round(found.missing / MIB) == missing
    assert found.terms[0].note.startswith(whose)


def test_what_is_not_known_wants_nothing() -> None:
    """Neither memory nor capacity, and a share of nothing is not known."""
    unread = need(Reason.BE_MEMORY_EVICT, EvictionStrategy(), observation=seen(node_sample=GONE))
    sizeless = need(Reason.BE_MEMORY_EVICT, EvictionStrategy(), node=node(0), observation=seen(used=100))
    assert (unread.hold_reason, sizeless.hold_reason) == (Reason.NODE_METRICS_MISSING,) * 2
    cpu = EvictionStrategy(cpu_threshold_pct=1, priority_threshold=1)
    assert need(Reason.CPU_EVICT, cpu, node=node(cpu=0)).hold_reason is Reason.NODE_METRICS_MISSING


def load(last: int, live: int, aggregate: int) -> Averages:
    return Averages(Usage(last), Usage(live), Usage(aggregate))


CPU_USED: dict[str, tuple[float | None, Averages, int]] = {
    "one tick": (None, load(1900, 0, 0), 340),
    "ten seconds": (10.0, load(1900, 1800, 0), 240),
    "five minutes": (60.0, load(1900, 0, 1700), 140),
    "the average only, it is over by now": (10.0, load(1000, 1900, 1900), 0),
    "on average only a little": (10.0, load(1900, 1000, 1900), 0),
    "less by now than on average": (10.0, load(1700, 1900, 0), 140),
}


@pytest.mark.parametrize(("window", "node_load", "missing"), CPU_USED.values(), ids=CPU_USED.keys())
def test_cpu_in_use(window: float | None, node_load: Averages, missing: int) -> None:
    """Above 80 % of 2000m on average over the window and by now; down to 78 %, by whichever says less."""
    strategy = EvictionStrategy(cpu_threshold_pct=80, priority_threshold=5999, cpu_window_seconds=window)
    found = need(Reason.CPU_EVICT, strategy, usage=usage(node=node_load))
    assert found.missing == missing and found.hold_reason is (None if missing else Reason.WITHIN_THRESHOLD)


@pytest.mark.parametrize(("lower", "missing"), [(None, 340), (79, 320), (50, 900), (80, 300), (90, 300)])
def test_cpu_down_to_its_lower_share(lower: int | None, missing: int) -> None:
    """Of 2000m, 1900m are in use: two below the threshold of 80 % where no lower share is given, and never above it."""
    strategy = EvictionStrategy(cpu_threshold_pct=80, cpu_lower_pct=lower, priority_threshold=5999)
    found = need(Reason.CPU_EVICT, strategy, usage=usage(node=load(1900, 1900, 1900)))
    assert found.missing == missing


def test_a_window_must_have_been_seen() -> None:
    """A third of it at least, as in Koordinator."""
    strategy = EvictionStrategy(cpu_threshold_pct=1, priority_threshold=1, cpu_window_seconds=9.0)
    early = need(Reason.CPU_EVICT, strategy, usage=usage(live_seconds=2.9))
    enough = need(Reason.CPU_EVICT, strategy, usage=usage(live_seconds=3.0))
    assert (early.hold_reason, enough.hold_reason) == (Reason.WINDOW_FILLING, None)


def asking(name: str, cpu: int, reserved: int = 0, **more: Any) -> Any:
    """For batch-cpu; more of it is reserved where an init container asked for more."""
    requests = ResourceVector({BATCH_CPU: max(cpu, reserved)})
    return batch(name, requests=requests, containers=(Container("main", ResourceVector({BATCH_CPU: cpu})),), **more)


SATISFACTION: dict[str, tuple[dict[str, Any], int | None, int, Reason | None]] = {
    "gets 25 %, is to get 60 %": ({}, 1000, 1400, None),
    "gets enough": ({}, 2000, 0, Reason.WITHIN_THRESHOLD),
    "at the lower share": ({"cpu_satisfaction_lower_pct": 25}, 1000, 1400, None),
    "just above it": ({"cpu_satisfaction_lower_pct": 25}, 1001, 0, Reason.WITHIN_THRESHOLD),
    "less than a CPU counts as used up": ({}, 999, 1401, None),
    "what it may use is not known": ({}, None, 0, Reason.KNOB_UNREADABLE),
    "nothing may be used": ({}, 0, 0, Reason.KNOB_UNREADABLE),
}


@pytest.mark.parametrize(("fields", "limit", "missing", "held"), SATISFACTION.values(), ids=SATISFACTION.keys())
def test_satisfaction(fields: dict[str, Any], limit: int | None, missing: int, held: Reason | None) -> None:
    """upper % x 4000m requested - limit; online and ended pods do not ask, nor do init containers that are over."""
    strategy = EvictionStrategy(**{"cpu_satisfaction_lower_pct": 30, "cpu_satisfaction_upper_pct": 60, **fields})
    pods = (asking("a", 1500, 9000), asking("b", 2500), asking("c", 9000, phase=PodPhase.SUCCEEDED), online("d"))
    found = need(
        Reason.BE_CPU_EVICT, strategy, *pods, best_effort_millis=limit, usage=usage(*pods, best_effort=steady(1000))
    )
    assert (found.missing, found.hold_reason) == (missing, held)


@pytest.mark.parametrize(("used", "missing"), [(load(900, 0, 0), 1400), (load(899, 0, 0), 0)])
def test_best_effort_must_use_what_it_may(used: Averages, missing: int) -> None:
    """Else fewer pods would not get more: 90 % of the limit, unless told otherwise."""
    strategy = EvictionStrategy(cpu_satisfaction_lower_pct=30, cpu_satisfaction_upper_pct=60)
    pod = asking("a", 4000)
    found = need(Reason.BE_CPU_EVICT, strategy, pod, best_effort_millis=1000, usage=usage(pod, best_effort=used))
    assert found.missing == missing
    idle = EvictionStrategy(cpu_satisfaction_lower_pct=30, cpu_satisfaction_upper_pct=60, cpu_be_usage_threshold_pct=0)
    assert need(Reason.BE_CPU_EVICT, idle, pod, best_effort_millis=1000).missing == 1400


ALLOCATABLE: dict[str, tuple[dict[str, int], int]] = {
    "of the Node": ({"batch_cpu": 1000}, 1400),
    "zero counts as one": ({"batch_cpu": 0}, 2399),
    "no batch-cpu": ({}, 0),
}


@pytest.mark.parametrize(("allocatable", "missing"), ALLOCATABLE.values(), ids=ALLOCATABLE.keys())
def test_satisfaction_by_what_is_lent(allocatable: dict[str, int], missing: int) -> None:
    """evictByAllocatable measures against batch-cpu instead of the real limit."""
    strategy = EvictionStrategy(
        cpu_satisfaction_lower_pct=30, cpu_satisfaction_upper_pct=60, cpu_limit_policy=CpuLimitPolicy.ALLOCATABLE
    )
    pod = asking("a", 4000)
    found = need(
        Reason.BE_CPU_EVICT,
        strategy,
        pod,
        node=node(**allocatable),
        best_effort_millis=99_999,
        usage=usage(pod, best_effort=steady(1000)),
    )
    assert found.missing == missing


BY_REQUEST = EvictionStrategy(
    memory_threshold_pct=None,
    cpu_allocatable_threshold_pct=100,
    cpu_allocatable_lower_pct=80,
    memory_allocatable_threshold_pct=100,
    memory_allocatable_lower_pct=80,
    allocatable_priority_threshold=5999,
)


def lent(resource: str, amount: int, reason: Reason = Reason.COMPUTED) -> dict[str, Decision]:
    unit = Unit.MILLI_CPU if resource in (BATCH_CPU, MID_CPU) else Unit.BYTES
    return {resource: Decision("node/n", resource, amount, unit, reason, (Term("x", amount),))}


REQUESTED: dict[str, tuple[int, dict[str, Decision], int, Reason | None]] = {
    "within": (3000, {}, 0, Reason.WITHIN_THRESHOLD),
    "above": (2999, {}, 3000 - 2399, None),
    "what is truly lent counts, the Node covers what was admitted": (3000, lent(BATCH_CPU, 1000), 2200, None),
    "nothing is lent": (3000, lent(BATCH_CPU, 0), 3000, None),
    "nothing is lent since facts are old": (
        3000,
        lent(BATCH_CPU, 0, Reason.NODE_METRICS_STALE),
        0,
        Reason.NODE_METRICS_STALE,
    ),
    "lending was switched off": (3000, lent(BATCH_CPU, 0, Reason.LENDING_DISABLED), 0, Reason.LENDING_DISABLED),
}


@pytest.mark.parametrize(("allocatable", "truly", "missing", "held"), REQUESTED.values(), ids=REQUESTED.keys())
def test_requests(allocatable: int, truly: dict[str, Decision], missing: int, held: Reason | None) -> None:
    """3000m of batch-cpu at priorities up to 5999, against what is lent; a zero nobody computed evicts nobody."""
    pods = (
        asking("a", 1000),
        asking("b", 2000),
        asking("c", 500, priority=6000),
        asking("d", 1, phase=PodPhase.FAILED),
    )
    found = need(Reason.CPU_ALLOCATABLE_EVICT, BY_REQUEST, *pods, node=node(batch_cpu=allocatable), lent=truly)
    assert (found.resource, found.missing, found.hold_reason) == (BATCH_CPU, missing, held)


def test_each_resource_is_a_need_of_its_own() -> None:
    """batch, mid and native; a resource the node does not know is held, native CPU is counted in milli-CPU."""
    web = online("a", requests=ResourceVector({CPU: 2500, MEMORY: 1}), priority=5000)
    found = measured(Reason.CPU_ALLOCATABLE_EVICT, known(web, strategy=BY_REQUEST, node=node(batch_cpu=10)))
    assert [(each.resource, each.missing, each.hold_reason) for each in found] == [
        (BATCH_CPU, 0, Reason.WITHIN_THRESHOLD),
        (MID_CPU, 0, Reason.NODE_METRICS_MISSING),
        (CPU, 900, None),
    ]
    memory = measured(Reason.MEMORY_ALLOCATABLE_EVICT, known(web, strategy=BY_REQUEST))
    assert [each.resource for each in memory][::2] == [BATCH_MEMORY, MEMORY]


PRIORITIES: dict[str, tuple[int, PriorityBand, int]] = {
    "as written": (4321, PriorityBand.PROD, 4321),
    "prod": (0, PriorityBand.PROD, 9500),
    "mid": (0, PriorityBand.MID, 7500),
    "batch": (0, PriorityBand.BATCH, 5500),
    "free": (0, PriorityBand.FREE, 3500),
    "no band": (0, PriorityBand.NONE, 0),
}


@pytest.mark.parametrize(("priority", "band", "expected"), PRIORITIES.values(), ids=PRIORITIES.keys())
def test_effective_priority(priority: int, band: PriorityBand, expected: int) -> None:
    """spec.priority, else what its band usually has."""
    assert effective_priority(make_pod("d", "p", "u", priority=priority, band=band, qos=QoSClass.LS)) == expected


@given(used=st.integers(0, 20 << 30), threshold=st.integers(0, 100), lower=st.none() | st.integers(0, 100))
def test_never_less_than_nothing(used: int, threshold: int, lower: int | None) -> None:
    """Whatever is used and asked for: a need is at least 0, at most what is used, and 0 below the threshold."""
    strategy = EvictionStrategy(memory_threshold_pct=threshold, memory_lower_pct=lower)
    sample = msgspec.structs.replace(seen().node_sample, memory_used_bytes=used)
    found = need(Reason.BE_MEMORY_EVICT, strategy, observation=seen(node_sample=sample))
    assert 0 <= found.missing <= used
    assert (found.missing == 0) == (found.hold_reason is not None)
    assert found.hold_reason is not None or used * 100 >= 10 * GIB * threshold
