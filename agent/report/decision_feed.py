"""Decisions as news: only what changed, to whoever listens, with a bounded past; few of them are worth a log line."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Mapping

import structlog

from agent.ports import TickResult
from model.decision import Decision
from model.explain import OFFERED, sentence
from model.reason import Reason

log = structlog.get_logger()

_PAST = 512
_LISTENER_QUEUE = 256
_MOST_KNOWN = 4096
"""So many decisions are compared with what was said of the same thing last: pods come and go, and each has its own."""
_NEWS_RATIO = 0.05
_ZONE = "/zone/"
_HELD = (Reason.BELOW_DEADBAND, Reason.WINDOW_FILLING, Reason.BRAKE, Reason.WITHIN_THRESHOLD)
"""Why a ceiling stays as it is; the brake's own cuts are logged all the same."""
_MOVES = {Reason.QUOTA_RAISED, Reason.QUOTA_LOWERED}
Key = tuple[str, str, bool]
_LOG_REST_SECONDS = 60.0
"""For so long a value that only moves on is not logged again."""


def news(last: Mapping[Key, Decision], decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Decisions whose reason changed or whose value moved by more than 5 %."""
    return tuple(d for d in decisions if _is_news(last.get(key_of(d)), d))


def key_of(decision: Decision) -> Key:
    """What a decision is about. What may be lent and what is offered of it bear the same subject and name."""
    return decision.subject, decision.name, decision.policy == OFFERED


def _is_news(before: Decision | None, now: Decision) -> bool:
    return before is None or before.reason is not now.reason or _has_moved(before, now)


def _has_moved(before: Decision, now: Decision) -> bool:
    return abs(now.value - before.value) > abs(before.value) * _NEWS_RATIO


def log_worthy(logged: Decision | None, now: Decision, elapsed_seconds: float) -> bool:
    """Whether a decision deserves a line, so long after the one `logged` last: noise must not fill a disk.

    Zones repeat the node; an offer is logged once the Node has it; a ceiling that follows the load up and down has no
    new reason.
    """
    if _ZONE in now.subject or now.policy == OFFERED or now.reason in _HELD:
        return False
    if logged is None or not (logged.reason is now.reason or {logged.reason, now.reason} <= _MOVES):
        return True
    return elapsed_seconds >= _LOG_REST_SECONDS and _has_moved(logged, now)


class DecisionFeed:
    """A sink of the tick. A listener that does not keep up loses the oldest entries, never the agent's time."""

    def __init__(self) -> None:
        self._last: OrderedDict[Key, Decision] = OrderedDict()
        self._logged: OrderedDict[Key, tuple[Decision, float]] = OrderedDict()
        self._past: deque[Decision] = deque(maxlen=_PAST)
        self._victims: deque[Decision] = deque(maxlen=_PAST)
        self._errors: tuple[str, ...] = ()
        self._listeners: set[asyncio.Queue[Decision]] = set()

    def take(self, result: TickResult) -> None:
        at = result.observation.monotonic_seconds
        for cut in result.cuts:
            self._tell(cut)
            self._log(cut, at)
        for decision in news(self._last, result.own_decisions):
            self._tell(decision)
        self._victims.extend(request.decision for request in result.evictions.requests)
        # Not only news: what moved while it was not to be logged may rest at its new value since.
        for decision in result.own_decisions:
            logged, logged_at = self._logged.get(key_of(decision), (None, 0.0))
            if log_worthy(logged, decision, at - logged_at):
                self._log(decision, at)
        errors = tuple(outcome.error for outcome in result.outcomes if outcome.error)
        if errors != self._errors:
            for error in errors:
                log.error("limit not applied", error=error)
        self._errors = errors
        self._forget(result.own_decisions)

    def _tell(self, decision: Decision) -> None:
        self._last[key_of(decision)] = decision
        self._past.append(decision)
        for listener in self._listeners:
            _offer(listener, decision)

    def _log(self, decision: Decision, at: float) -> None:
        self._logged[key_of(decision)] = (decision, at)
        log.info("decision", text=sentence(decision))

    def _forget(self, heard: tuple[Decision, ...]) -> None:
        """What nothing was heard of for longest, where too much is known."""
        for known in (self._last, self._logged):
            for decision in heard:
                if (key := key_of(decision)) in known:
                    known.move_to_end(key)
            while len(known) > _MOST_KNOWN:
                known.popitem(last=False)

    @property
    def victims(self) -> tuple[Decision, ...]:
        """About pods that were told to go or evicted, oldest first."""
        return tuple(self._victims)

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
