"""Decisions become news only when they change, and a slow listener costs nobody anything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.core.brake import BrakePlan, Cut
from agent.core.plan import Write
from agent.core.reclaimable import Lending
from agent.feed import DecisionFeed, news
from agent.ports import TickResult, WriteOutcome
from model.decision import Decision, Term, Unit
from model.reason import Reason


def decided(value: int, reason: Reason = Reason.COMPUTED) -> Decision:
    return Decision("node/n", "r", value, Unit.MILLI_CPU, reason, (Term("x", value),))


def result(build: Any, *decisions: Decision, **parts: Any) -> TickResult:
    found: TickResult = build.result(lending=Lending(decisions), **parts)
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
    last = {("node/n", "r"): before} if before else {}
    assert bool(news(last, (now,))) is expected


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
