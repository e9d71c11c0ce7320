"""Decisions become news only when they change, and a slow listener costs nobody anything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent.core.limits import Limits
from agent.feed import DecisionFeed, news
from agent.ports import TickResult
from model.decision import Decision, Term, Unit
from model.reason import Reason


def decided(value: int, reason: Reason = Reason.COMPUTED) -> Decision:
    return Decision("node/n", "r", value, Unit.MILLI_CPU, reason, (Term("x", value),))


def result(build: Any, *decisions: Decision, cuts: tuple[Decision, ...] = ()) -> TickResult:
    return TickResult(build.seen(), None, None, decisions, Limits({}, None), cuts, (), None, "")  # type: ignore[arg-type]


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
        feed.take(result(build, decided(1), cuts=(decided(9, Reason.BRAKE),)))
        assert [d.value for d in feed.past(5)] == [1, 9]
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
            feed.take(result(build, decided(turn * 2 % 4, Reason.COMPUTED)))
        feed.take(result(build, decided(7)))
        waiting = [queue.get_nowait() for _ in range(queue.qsize())]
        assert len(waiting) == 256 and waiting[-1].value == 7

    asyncio.run(scene())
