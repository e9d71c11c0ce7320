"""The newest decision of ours about each subject, a ring of past ones, and whoever watches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from model.decision import Decision
from model.placement import Scored
from scheduler.core.scores.choice import NodeChoice

_WATCHER_LIMIT = 1000
_CHOICES = 4096
"""So many of the newest placements can tell their scores: each holds two rows of the cluster, some 2 kB."""


class DecisionHistory:
    """Keeps at most `limit` past decisions; a watcher that falls 1,000 behind loses the oldest."""

    def __init__(self, limit: int) -> None:
        self._ring: deque[Decision] = deque(maxlen=limit)
        self._newest: dict[str, Decision] = {}
        self._preemption: dict[str, Decision] = {}
        self._choices: dict[str, NodeChoice] = {}
        self._watchers: list[tuple[deque[Decision], asyncio.Event]] = []

    def record(self, decision: Decision) -> bool:
        """Take in a decision of ours; only a change of reason or detail is a new one. True where the reason is new."""
        before = self._newest.get(decision.subject)
        self._newest[decision.subject] = decision
        if before is not None and (before.reason, before.detail) == (decision.reason, decision.detail):
            return False
        self.pass_on(decision)
        return before is None or before.reason != decision.reason

    def pass_on(self, decision: Decision) -> None:
        """For those who watch alone; it answers no question about its subject."""
        self._ring.append(decision)
        for waiting, signal in self._watchers:
            waiting.append(decision)
            signal.set()

    def weigh(self, subject: str, preemption: Decision) -> bool:
        """What came of preemption for a subject that waits; whom it takes is news to those who watch.

        True where the reason is new.
        """
        before = self._preemption.get(subject)
        self._preemption[subject] = preemption
        if preemption.value and (before is None or before.detail != preemption.detail):
            self.pass_on(preemption)
        return before is None or before.reason != preemption.reason

    def forget(self, subject: str) -> None:
        """The subject has no pods any more; the ring keeps its past."""
        self._newest.pop(subject, None)
        self._preemption.pop(subject, None)
        self._choices.pop(subject, None)

    def preemption(self, subject: str) -> Decision | None:
        """What came of preemption for a subject, None where it was not considered."""
        return self._preemption.get(subject)

    def chose(self, subject: str, choice: NodeChoice) -> None:
        """Why a lone pod has its node; the oldest such choice makes room."""
        self._choices.pop(subject, None)
        if len(self._choices) >= _CHOICES:
            del self._choices[next(iter(self._choices))]
        self._choices[subject] = choice

    def scored(self, subject: str) -> Scored | None:
        """The scores by which a lone pod got its node, None where they are not known any more."""
        choice = self._choices.get(subject)
        return None if choice is None else choice.scored()

    def newest(self, subject: str) -> Decision | None:
        return self._newest.get(subject)

    async def watch(self, subject_prefix: str, history: int) -> AsyncIterator[Decision]:
        """Up to `history` past decisions, oldest first, then each new one as it comes, for ever."""
        waiting: deque[Decision] = deque(maxlen=_WATCHER_LIMIT)
        signal = asyncio.Event()
        entry = (waiting, signal)
        self._watchers.append(entry)
        try:
            past = [decision for decision in self._ring if decision.subject.startswith(subject_prefix)]
            for decision in past[len(past) - min(history, len(past)) :]:
                yield decision
            while True:
                await signal.wait()
                signal.clear()
                while waiting:
                    decision = waiting.popleft()
                    if decision.subject.startswith(subject_prefix):
                        yield decision
        finally:
            self._watchers.remove(entry)
