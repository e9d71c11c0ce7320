"""For how long a container may exceed its limit, and how busy the CPUs are that online pods share."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.burst_tokens import PoolState, Tokens, most_tokens, shared_pool
from agent.core.limit.cpu_burst import BurstFacts
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, CgroupSample, CpuThrottling, Missing
from model.qos import QoSClass
from model.resources import CPU, ResourceVector
from model.strategy import BurstStrategy
from tests.pods import with_fields

LIMIT_US = 100_000
"""One CPU."""
STRATEGY = BurstStrategy(quota_pct=300, quota_seconds=60)
MOST = 12_000


def sample(cpu_millis: int, seconds: float, throttled: int = 0) -> CgroupSample:
    return CgroupSample(int(cpu_millis * seconds * 1_000_000), 0, throttling=CpuThrottling(100, throttled))


def spent(cpu_millis: int, seconds: float = 10.0, throttled: int = 0) -> Tokens:
    """After so long at so much, from the start on."""
    first = Tokens.after(None, sample(0, 0), LIMIT_US, 100.0, most_tokens(STRATEGY))
    found = Tokens.after(first, sample(cpu_millis, seconds, throttled), LIMIT_US, 100.0 + seconds, MOST)
    assert found is not None
    return found


# use of a limit of 1000 milli-CPU, for how long -> tokens, of 12,000 at most and 3,000 at first
TOKENS: dict[str, tuple[int, float, float]] = {
    "twice the limit costs its excess": (2000, 10.0, 2000),
    "three times, until all is owed": (3000, 1000.0, -MOST),
    "the limit exactly": (1000, 10.0, 3000),
    "between three fifths and the limit nothing changes": (600, 10.0, 3000),
    "less saves": (500, 10.0, 3500),
    "idle, until it is full": (0, 1000.0, MOST),
}


@pytest.mark.parametrize(("millis", "seconds", "expected"), TOKENS.values(), ids=TOKENS.keys())
def test_tokens(millis: int, seconds: float, expected: float) -> None:
    """As in Koordinator, percent of the limit times seconds."""
    assert most_tokens(STRATEGY) == MOST
    assert spent(millis, seconds).saved == pytest.approx(expected)


def test_periods() -> None:
    """Without an end, and with no time at all, nothing is saved."""
    assert most_tokens(BurstStrategy(quota_seconds=-1)) == most_tokens(BurstStrategy(quota_seconds=0)) == 0


def test_when_it_was_throttled() -> None:
    """The moment its counter moved."""
    assert spent(1000, 10.0, throttled=1).throttled_at == 110.0
    assert spent(1000, 10.0).throttled_at < 0


def test_what_begins_again() -> None:
    """Another strategy, counters that went back; what cannot be read leaves all as it was."""
    before = spent(500)
    for most, counters in ((6000, sample(500, 11)), (MOST, sample(0, 0))):
        found = Tokens.after(before, counters, LIMIT_US, 111.0, most)
        assert found is not None and found.saved == most / 4
    for gone in (None, Missing("/x", Absence.GONE), CgroupSample(0, 0)):
        assert Tokens.after(before, gone, LIMIT_US, 111.0, MOST) is before
        assert Tokens.after(None, gone, LIMIT_US, 111.0, MOST) is None


# node's use, best effort's, an LSR pod's request and use -> state, shared milli-CPU, with a threshold of 50 % of 10 CPUs
POOLS: dict[str, tuple[int, int, tuple[int, int], tuple[PoolState, int]]] = {
    "idle": (4499, 0, (0, 0), (PoolState.IDLE, 10_000)),
    "nine tenths of the threshold": (4500, 0, (0, 0), (PoolState.COOLING, 10_000)),
    "the threshold": (5000, 0, (0, 0), (PoolState.OVERLOAD, 10_000)),
    "best effort gives way": (9000, 5000, (0, 0), (PoolState.IDLE, 10_000)),
    "LSR pods have CPUs of their own": (6000, 0, (4000, 4000), (PoolState.IDLE, 6000)),
    "and leave fewer to others": (5000, 0, (4000, 1000), (PoolState.OVERLOAD, 6000)),
    "nothing is shared": (0, 0, (10_000, 0), (PoolState.OVERLOAD, 0)),
}


@pytest.mark.parametrize(("node", "best_effort", "reserved", "expected"), POOLS.values(), ids=POOLS.keys())
def test_the_pool(
    build: Any, node: int, best_effort: int, reserved: tuple[int, int], expected: tuple[PoolState, int]
) -> None:
    """Use of what is shared against the threshold."""
    lsr = with_fields(build.pod("db", cpu=reserved[0], qos=QoSClass.LSR), qos_label=QoSClass.LSR)
    usage = build.usage(
        {lsr.uid: build.averages(reserved[1])}, node=build.averages(node), best_effort=build.averages(best_effort)
    )
    found = shared_pool(usage, 10_000, BurstFacts(Layout(), BurstStrategy(pool_pct=50), (lsr,)))
    assert (found.state, found.millis) == expected


def test_nobody_takes_the_pool_by_asking(build: Any) -> None:
    """An LSR pod that no kubelet admitted, and one that a resize asks everything for and was granted 2 CPUs."""
    asks = with_fields(build.pod("asks", cpu=10_000, qos=QoSClass.LSR), qos_label=QoSClass.LSR)
    grows = with_fields(
        build.pod("grows", cpu=10_000, qos=QoSClass.LSR),
        qos_label=QoSClass.LSR,
        certain=ResourceVector({CPU: 2000}),
    )
    usage = build.usage({grows.uid: build.averages(0)}, node=build.averages(0))
    found = shared_pool(usage, 10_000, BurstFacts(Layout(), BurstStrategy(pool_pct=50), (asks, grows)))
    assert (found.state, found.millis) == (PoolState.IDLE, 8000)


def test_what_is_not_measured(build: Any) -> None:
    """Neither use nor pods known."""
    facts = BurstFacts(Layout(), BurstStrategy(), ())
    assert shared_pool(None, 1000, facts).state is PoolState.UNKNOWN
    assert shared_pool(build.usage(), 1000, BurstFacts(Layout(), BurstStrategy(), None)).state is PoolState.UNKNOWN
