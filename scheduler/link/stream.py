"""One agent's stream as the link has it: how far it is, what it was told, and how it is to end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import grpc
import msgspec

from model.report import EvictionCost, PreemptionNotice

_PART_BYTES = 4_096
_CostKey: TypeAlias = tuple[tuple[str, str, int, int | None], ...]


class StreamLimits(msgspec.Struct, frozen=True):
    """How long a stream may keep us waiting, and how long it may last."""

    costs_interval_seconds: float = 1.0
    patience_seconds: float = 10.0
    """For hello, and for each message to be read; agents send both sides' first word within milliseconds."""
    life_seconds: float = 1_800.0
    """± a tenth, so that agents do not come back all at once; half of what a projected token lives by default."""
    renewal_seconds: float = 10.0
    """In which an agent whose stream was ended for its age is still linked; it needs some tens of milliseconds."""
    messages_a_second: int = 100
    """What is read of one agent: it says a few a second, and after a break hands in at most 256 that waited. A long
    message counts once more for each 4 KiB."""
    streams_a_node: int = 4
    """One counts; the others are older ones whose end is not through yet."""
    links_a_node: int = 30
    """Taken of one node in ten seconds; an agent that is cut off tries again after half a second, one, two …"""


class LinkRate:
    """How many links each node has opened lately: each costs a line of the log, and a look at the node's pods."""

    _SECONDS = 10.0

    def __init__(self, most: int) -> None:
        self._most = most
        self._began = float("-inf")
        self._counts: Counter[str] = Counter()

    def take(self, node: str, now: float) -> bool:
        """One more, unless there were as many as may be."""
        if now - self._began >= self._SECONDS:
            self._began, self._counts = now, Counter()
        self._counts[node] += 1
        return self._counts[node] <= self._most


class LinkStream:
    """One agent's stream; `ending` is the status we end it with, once we do."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.received = 0
        self.acknowledged = 0
        self.over = asyncio.Event()
        self.ending: tuple[grpc.StatusCode, str] | None = None
        self._told: dict[str, PreemptionNotice] = {}
        self.wake = asyncio.Event()
        self.closing = False
        self.renewing = False
        self._sent_costs: _CostKey | None = None
        self._costs_due_seconds = 0.0
        self._second_began = float("-inf")
        self._in_second = 0

    def end(self, code: grpc.StatusCode, why: str) -> None:
        self.ending = (code, why)
        self.over.set()

    def renew(self) -> None:
        """End in order; the agent comes back at once."""
        self.renewing = True
        self.over.set()

    def rest(self, now: float, most: int, size_bytes: int) -> float:
        """Seconds to wait after a message of that size, so that one agent that floods does not starve the others."""
        if now - self._second_began >= 1.0:
            self._second_began, self._in_second = now, 0
        self._in_second += 1 + size_bytes // _PART_BYTES
        return 0.0 if self._in_second < most else max(0.0, self._second_began + 1.0 - now)

    def notices(
        self, open_notices: tuple[PreemptionNotice, ...], now: float
    ) -> tuple[list[PreemptionNotice], list[str]]:
        """Notices this stream was not told; and the pods of those it was told and that stand no longer.

        A notice whose deadline has passed needs no withdrawal.
        """
        before, self._told = self._told, {notice.pod_uid: notice for notice in open_notices}
        news = [notice for notice in open_notices if before.get(notice.pod_uid) != notice]
        withdrawn = [uid for uid, old in before.items() if uid not in self._told and old.deadline_seconds > now]
        return news, withdrawn

    def costs_due(
        self, ask: Callable[[str], tuple[EvictionCost, ...]], now: float, interval_seconds: float
    ) -> tuple[EvictionCost, ...] | None:
        """The node's costs where they changed, asked at most once an interval; growing older is no change."""
        if now < self._costs_due_seconds:
            return None
        self._costs_due_seconds = now + interval_seconds
        costs = ask(self.node)
        key = tuple(_key(cost, now) for cost in costs)
        if key == self._sent_costs:
            return None
        self._sent_costs = key
        return costs


def _key(cost: EvictionCost, now: float) -> tuple[str, str, int, int | None]:
    saved = None if cost.checkpoint_age_seconds is None else round(now - cost.checkpoint_age_seconds)
    return (cost.pod_uid, cost.gang, cost.members_above_minimum, saved)
