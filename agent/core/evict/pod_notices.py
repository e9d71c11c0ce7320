"""Notices that stand for pods of this node: from the scheduler, and from the agent's own evictions.

The two are withdrawn each by whom they came from: a pod that the scheduler spares may still be evicted for memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from agent.core.evict.eviction_request import PendingVictim
from model.reason import words
from model.report import PreemptionNotice

_MOST = 4096
_AFTER_SECONDS = 60.0
"""A pod that is still there, and not ending, so long after the scheduler's deadline was spared: no word of it came."""


class NoticeOrigin(StrEnum):
    """Who wants the pod gone."""

    SCHEDULER = "scheduler"
    AGENT = "agent"


class PodWord(msgspec.Struct, frozen=True):
    """What one pod is told at present; without a notice that it stays after all."""

    notice: PreemptionNotice | None


class PodNotices:
    """`of` may be asked from any thread, all else is one thread's."""

    def __init__(self) -> None:
        self._standing: dict[str, dict[NoticeOrigin, PreemptionNotice]] = {}
        self._words: dict[str, PodWord] = {}

    def of(self, uid: str) -> PodWord | None:
        """None where there was never anything to tell. The same object as long as nothing changed."""
        return self._words.get(uid)

    def put(self, origin: NoticeOrigin, notice: PreemptionNotice) -> None:
        """The newest of an origin counts; beyond thousands the oldest pod's is given up."""
        self._standing.setdefault(notice.pod_uid, {})[origin] = notice
        if len(self._standing) > _MOST:
            self._forget(next(iter(self._standing)))
        self._settle(notice.pod_uid)

    def withdraw(self, origin: NoticeOrigin, uid: str) -> None:
        """Nothing happens where that origin gave none."""
        if self._standing.get(uid, {}).pop(origin, None) is not None:
            self._settle(uid)

    def restore(self, pending: Mapping[str, PendingVictim]) -> None:
        """The agent's own, from what one before it has written down."""
        for uid, victim in pending.items():
            if victim.notified_until_seconds is not None:
                notice = PreemptionNotice(uid, victim.notified_until_seconds, words(victim.reason))
                self.put(NoticeOrigin.AGENT, notice)

    def keep_own(self, pending: Collection[str]) -> tuple[str, ...]:
        """Withdraws the agent's own from pods that are not to be evicted any more; returns their uids."""
        spared = [uid for uid, of in self._standing.items() if NoticeOrigin.AGENT in of and uid not in pending]
        for uid in spared:
            self.withdraw(NoticeOrigin.AGENT, uid)
        return tuple(spared)

    def prune(self, staying: Collection[str], ending: Collection[str], now: float) -> tuple[str, ...]:
        """Forgets pods that are not on the node (in neither collection of uids); returns uids of those now spared.

        A pod that is not known yet may have its notice before it: that is kept until its deadline has passed.
        """
        spared = []
        for uid in tuple(self._standing):
            standing = self._standing[uid]
            past = {of for of, notice in standing.items() if notice.deadline_seconds + _AFTER_SECONDS < now}
            if uid in staying and NoticeOrigin.SCHEDULER in past:
                self.withdraw(NoticeOrigin.SCHEDULER, uid)
                spared.append(uid)
            elif uid not in staying and uid not in ending and past == standing.keys():
                self._forget(uid)
        return tuple(spared)

    def _settle(self, uid: str) -> None:
        """The earliest deadline is the one to heed."""
        standing = self._standing[uid].values()
        word = PodWord(min(standing, key=lambda each: each.deadline_seconds) if standing else None)
        if word != self._words.get(uid):
            self._words[uid] = word

    def _forget(self, uid: str) -> None:
        del self._standing[uid]
        self._words.pop(uid, None)
