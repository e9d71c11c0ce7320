"""Decisions become news only when they change, and a slow listener costs nobody anything."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from agent.core.lend.reclaimable import NodeLending
from agent.core.limit.brake import BrakePlan, Cut
from agent.core.limit.decide import NodeLimits
from agent.core.limit.plan import Write
from agent.core.limit.wanted_limit import Limit
from agent.ports import TickResult, WriteOutcome
from agent.report.decision_feed import DecisionFeed, key_of, log_worthy, news
from model.decision import Decision, Term, Unit
from model.explain import OFFERED
from model.reason import Reason


def decided(value: int, reason: Reason = Reason.COMPUTED) -> Decision:
    return Decision("node/n", "r", value, Unit.MILLI_CPU, reason, (Term("x", value),))


def result(build: Any, *decisions: Decision, **parts: Any) -> TickResult:
    found: TickResult = build.result(lending=NodeLending(decisions), **parts)
    return found


def cut(build: Any, value: int) -> Cut:
    """To `value` us a period, from a base of 1000."""
    plan = BrakePlan(build.knobs.quota, (Term("capacity", 1000),), 1000, 0, 900, 10)
    return Cut(plan, 1000.0, 0.0, 900, value, 1000 - value)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (None, decided(5), True),
        (decided(100), decided(105), False),
        (decided(100), decided(106), True),
        (decided(100), decided(94), True),
        (decided(0), decided(1), True),
        (decided(5), decided(5, Reason.PODS_STALE), True),
    ],
)
def test_news(before: Decision | None, now: Decision, expected: bool) -> None:
    """A new reason, or more than 5 % of the value."""
    last = {key_of(before): before} if before else {}
    assert bool(news(last, (now,))) is expected


def test_what_is_offered_is_news_of_its_own() -> None:
    """It bears subject and name of what may be lent: neither hides the other, and only the latter is logged here."""
    lent, offered = decided(100), msgspec.structs.replace(decided(50), policy=OFFERED)
    assert news({key_of(lent): lent}, (lent, offered)) == (offered,)
    assert log_worthy(None, lent, 0.0) and not log_worthy(None, offered, 0.0)


def ceiling(value: int, reason: Reason) -> Decision:
    return Decision("cgroup/be", "cpu.max", value, Unit.MICROSECONDS, reason, (Term("x", value),))


ZONE = Decision("node/n/zone/node-0", "r", 5, Unit.MILLI_CPU, Reason.COMPUTED, (Term("x", 5),))
RAISED, LOWERED = Reason.QUOTA_RAISED, Reason.QUOTA_LOWERED


@pytest.mark.parametrize(
    ("case", "logged", "now", "elapsed", "expected"),
    [
        ("a node's first", None, decided(5), 0, True),
        ("a zone's", None, ZONE, 99, False),
        ("held below the deadband", ceiling(100, RAISED), ceiling(200, Reason.BELOW_DEADBAND), 99, False),
        ("held while the window fills", None, ceiling(-1, Reason.WINDOW_FILLING), 99, False),
        ("held after a cut", ceiling(100, Reason.BRAKE), ceiling(100, Reason.BRAKE), 99, False),
        ("to and fro", ceiling(100, RAISED), ceiling(95, LOWERED), 99, False),
        ("lower, after a minute", ceiling(100, RAISED), ceiling(94, LOWERED), 60, True),
        ("lower, within it", ceiling(100, RAISED), ceiling(50, LOWERED), 59, False),
        ("more lent, after a minute", decided(100), decided(200), 60, True),
        ("more lent, within it", decided(100), decided(200), 59, False),
        ("raised after a cut", ceiling(100, Reason.BRAKE), ceiling(101, RAISED), 0, True),
        ("somebody else writes", ceiling(100, RAISED), ceiling(100, Reason.FOREIGN_WRITER_LOOSENED), 0, True),
        ("withheld", decided(0), decided(0, Reason.PODS_STALE), 0, True),
    ],
)
def test_what_deserves_a_log_line(
    case: str, logged: Decision | None, now: Decision, elapsed: float, expected: bool
) -> None:
    """What a person would act upon or miss; noise and repetition do not."""
    assert log_worthy(logged, now, elapsed) is expected, case


def test_a_restless_ceiling_is_a_line_a_minute(build: Any) -> None:
    """The log stays small whatever the load does; whoever watches decisions sees all of it."""
    feed = DecisionFeed()
    values = [(100_000, RAISED), (50_000, LOWERED), (50_000, Reason.BELOW_DEADBAND)] * 40
    with capture_logs() as logs:
        for second, (value, reason) in enumerate(values):
            knob = build.knobs.quota
            limits = NodeLimits({knob: Limit(knob, value, ceiling(value, reason))}, None, root=knob.cgroup)
            feed.take(result(build, decided(7), ZONE, observation=build.seen(second), limits=limits))
    # At 0 s; at 61 s the first fall after a minute: the raise at 60 s is back where the first line was.
    assert [entry["text"].split(" of ")[0] for entry in logs] == ["r", "cpu.max", "cpu.max"]
    assert len(feed.past(512)) == 2 + 120 and ZONE in feed.past(512)


def test_a_value_that_moved_and_rests_is_logged_at_last(build: Any) -> None:
    """The newest line of a log must not be wrong for hours."""
    feed = DecisionFeed()
    with capture_logs() as logs:
        for second in range(70):
            feed.take(result(build, decided(100 if second < 30 else 300), observation=build.seen(second)))
    assert [entry["text"].split(":")[0] for entry in logs] == ["r of node/n = 100m", "r of node/n = 300m"]


def test_what_is_known_of_pods_that_are_gone_is_bounded(build: Any) -> None:
    """Each batch pod has limits of its own, and a node sees any number of pods; what stays is remembered all the time."""
    feed, node, first = DecisionFeed(), decided(7), _limit_of_pod(0)
    held = sys.getrefcount(first)
    with capture_logs() as logs:
        for number in range(6000):
            limit = first if number == 0 else _limit_of_pod(number)
            feed.take(result(build, node, limit, observation=build.seen(number)))
    assert sys.getrefcount(first) == held
    assert len([entry for entry in logs if "of node/n" in entry["text"]]) == 1


def _limit_of_pod(number: int) -> Decision:
    terms = (Term("limit", number),)
    return Decision(f"cgroup/be/pod{number}", "cpu.max", number, Unit.MICROSECONDS, Reason.BATCH_RESOURCES, terms)


def test_every_cut_is_logged(build: Any) -> None:
    """However small: an online service surged."""
    feed = DecisionFeed()
    with capture_logs() as logs:
        for _ in range(2):
            feed.take(result(build, brake_cuts=(cut(build, 900),)))
    assert len(logs) == 2


def test_history_listeners_and_cuts(build: Any) -> None:
    """Cuts are always news; history is bounded by what was asked for; leaving ends the stream."""

    async def scene() -> None:
        feed = DecisionFeed()
        queue = feed.listen()
        feed.take(result(build, decided(1)))
        for _ in range(2):
            feed.take(result(build, decided(1), brake_cuts=(cut(build, 9),)))
        assert [d.value for d in feed.past(5)] == [1, 9, 9]
        assert (await queue.get()).value == 1 and (await queue.get()).reason is Reason.BRAKE
        assert [d.value for d in feed.past(1)] == [9] and feed.past(0) == ()
        feed.leave(queue)
        before = queue.qsize()
        feed.take(result(build, decided(500)))
        assert queue.qsize() == before

    asyncio.run(scene())


def test_a_slow_listener_loses_the_oldest(build: Any) -> None:
    """The queue stays bounded and holds the newest."""

    async def scene() -> None:
        feed = DecisionFeed()
        queue = feed.listen()
        for turn in range(1000):
            feed.take(result(build, decided(turn * 2 % 4)))
        feed.take(result(build, decided(7)))
        waiting = [queue.get_nowait() for _ in range(queue.qsize())]
        assert len(waiting) == 256 and waiting[-1].value == 7

    asyncio.run(scene())


def test_a_refused_limit_is_logged_once(build: Any) -> None:
    """Not each second; again when it comes back after a good tick."""
    write = Write(build.knobs.quota, 5, 9, decided(5))
    bad, good = (result(build, outcomes=(WriteOutcome(write, error),)) for error in ("/q: Invalid argument", ""))
    feed = DecisionFeed()
    with capture_logs() as logs:
        for taken in (bad, bad, good, bad):
            feed.take(taken)
    told = [entry["error"] for entry in logs if entry["log_level"] == "error"]
    assert told == ["/q: Invalid argument"] * 2
