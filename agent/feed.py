"""Decisions as news: only what changed, to whoever listens, with a bounded past."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

import structlog

from agent.ports import TickResult
from model.decision import Decision
from model.explain import sentence

log = structlog.get_logger()

_PAST = 512
_LISTENER_QUEUE = 256
_NEWS_RATIO = 0.05


def news(last: Mapping[tuple[str, str], Decision], decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Decisions whose reason changed or whose value moved by more than 5 %."""
    return tuple(d for d in decisions if _is_news(last.get((d.subject, d.name)), d))


def _is_news(before: Decision | None, now: Decision) -> bool:
    if before is None or before.reason is not now.reason:
        return True
    return abs(now.value - before.value) > abs(before.value) * _NEWS_RATIO


class DecisionFeed:
    """A sink of the tick. A listener that does not keep up loses the oldest entries, never the agent's time."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Decision] = {}
        self._past: deque[Decision] = deque(maxlen=_PAST)
        self._errors: tuple[str, ...] = ()
        self._listeners: set[asyncio.Queue[Decision]] = set()

    def take(self, result: TickResult) -> None:
        fresh = (*result.cuts, *news(self._last, result.own_decisions))
        for decision in fresh:
            self._last[(decision.subject, decision.name)] = decision
            self._past.append(decision)
            log.info("decision", text=sentence(decision))
            for listener in self._listeners:
                _offer(listener, decision)
        errors = tuple(outcome.error for outcome in result.outcomes if outcome.error)
        if errors != self._errors:
            for error in errors:
                log.error("limit not applied", error=error)
        self._errors = errors

    def past(self, count: int) -> tuple[Decision, ...]:
        return tuple(self._past)[-count:] if count else ()

    def listen(self) -> asyncio.Queue[Decision]:
        queue: asyncio.Queue[Decision] = asyncio.Queue(_LISTENER_QUEUE)
        self._listeners.add(queue)
        return queue

    def leave(self, queue: asyncio.Queue[Decision]) -> None:
        self._listeners.discard(queue)


def _offer(queue: asyncio.Queue[Decision], decision: Decision) -> None:
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(decision)
