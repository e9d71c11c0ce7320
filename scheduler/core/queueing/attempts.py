"""Who is tried in a turn where more are ready than it tries: an eighth of the attempts go to the passed over.

News ends a back-off at once, so workloads that fit nowhere are ready again and again, whoever stands before others in
the order. By the order alone a turn's worth of them would be all that is ever tried, and anybody may make so many pods.
The eighth is small, so that where many fit the order counts; among those that are tried it stays as it is. It goes to
namespaces in turn, and in each apart to online workloads: thousands of one namespace take none of it from others.

The same holds of plans that evict somebody, of which a turn makes few. Once one more is needed, only online workloads
and the passed over are tried: what stands behind in the order could take room that the next plan has to free again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias

import msgspec

from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.one_of_each import one_of_each

_PART = 8
_QUESTIONS = 64
_ALIKE = 8
"""Workloads that fare as one before them count as one attempt: each costs little, but there may be tens of thousands,
and any pod that ends wakes them all.
"""
_ASKS = 2
"""Whoever makes a gang chooses how many of its members are asked for one by one."""
_Group: TypeAlias = tuple[str, bool]
"""The namespace, and whether they are online."""


class TurnLimits(msgspec.Struct, frozen=True):
    """How many attempts a turn makes, and for how many workloads it evicts somebody.

    A gang is one attempt more for every two further classes of unlike members, or members with terms about other pods,
    and so is what takes back quota for every 64 pods that are looked at.
    `heads` is how many workloads of one queue it tries; None: as many as there are attempts.
    """

    attempts: int
    plans: int
    heads: int | None = None


class Attempts:
    """Counts the attempts and plans of a turn; remembers who was ready and passed over.

    Groups of the passed over stand in the order in which it is their turn, in each who waits longest first.
    """

    def __init__(self) -> None:
        self._passed_over: dict[_Group, dict[WorkloadId, None]] = {}
        self._ready: dict[WorkloadId, Candidate] = {}
        self._due: set[WorkloadId] = set()
        self._planning: set[WorkloadId] = set()
        self._postponed: set[WorkloadId] = set()
        self._left = 0
        self._plans = 0
        self._alike = 0
        self._heads: int | None = None
        self._tried: Counter[str] = Counter()

    def begin(self, ready: Iterable[Candidate], limits: TurnLimits) -> None:
        """A turn begins; who is not ready any more waits anew once it is."""
        self._ready = {candidate.subject: candidate for candidate in ready}
        self._forget_who_is_not_ready()
        self._heads, self._tried = limits.heads, Counter()
        share = _part_of(limits.attempts)
        due = self._first_due(share)
        planning = due[: _part_of(limits.plans)]
        self._due, self._planning, self._postponed = set(due), set(planning), set()
        self._left = limits.attempts - min(sum(_attempts_of(self._ready[subject]) for subject in due), share)
        self._plans = limits.plans - len(planning)
        for subject in planning:
            group = _group_of(self._ready[subject])
            self._passed_over[group] = self._passed_over.pop(group)

    def join(self, candidates: Iterable[Candidate]) -> None:
        """These are ready as well."""
        self._ready.update((candidate.subject, candidate) for candidate in candidates)

    @property
    def by_order(self) -> bool:
        """Whether the order has attempts left; once it has none, those that are `due` alone are tried."""
        return self._left > 0

    def due(self) -> list[Candidate]:
        """Those passed over before that have not had their turn yet, in no order."""
        return [self._ready[subject] for subject in self._due if subject in self._ready]

    def may(self, candidate: Candidate) -> bool:
        """Whether it is tried in this turn, now that it is its turn in the order."""
        if self._heads is not None and self._tried[candidate.governed_by] >= self._heads:
            return False
        by_order = self._left > 0 and (candidate.online or not self._postponed)
        return by_order or candidate.subject in self._due

    def may_plan(self, subject: WorkloadId) -> bool:
        """Whether somebody may be evicted for it in this turn."""
        return self._plans > 0 or subject in self._planning

    def planned(self, subject: WorkloadId) -> None:
        """Somebody is evicted for it."""
        self._plans -= subject not in self._planning
        self._planning.discard(subject)

    def postpone(self, subject: WorkloadId) -> None:
        """It fits nowhere and may have no plan in this turn, so it keeps its place for the next."""
        self._postponed.add(subject)

    def looked_at(self, candidate: Candidate, *, tried: bool, questions: int = 0) -> None:
        """It had its turn, which counts where it was tried, and for a part where it fared as one before it; so do many
        questions about what queues may lose for it.
        """
        subject = candidate.subject
        if self._heads is not None:
            self._tried[candidate.governed_by] += 1
        self._left -= questions // _QUESTIONS
        if tried and subject not in self._due:
            self._left -= _attempts_of(candidate)
        if not tried:
            self._alike += 1
            self._left -= self._alike % _ALIKE == 0
        self._due.discard(subject)
        if subject not in self._postponed:
            self._ready.pop(subject, None)
            if self._passed_over:
                self._passed_over.get(_group_of(candidate), {}).pop(subject, None)

    def end(self) -> bool:
        """Who was ready and had no turn is passed over; whether there is anybody."""
        for subject, candidate in self._ready.items():
            self._passed_over.setdefault(_group_of(candidate), {}).setdefault(subject)
        return bool(self._ready)

    def _first_due(self, share: int) -> list[WorkloadId]:
        """As many as the share is enough for, at least one."""
        due: list[WorkloadId] = []
        for subject in islice(one_of_each(self._passed_over.values()), share):
            share -= _attempts_of(self._ready[subject])
            if share < 0 and due:
                break
            due.append(subject)
        return due

    def _forget_who_is_not_ready(self) -> None:
        for group, waiting in tuple(self._passed_over.items()):
            ready = (subject for subject in waiting if subject in self._ready)
            left = {subject: None for subject in ready if _group_of(self._ready[subject]) == group}
            if left:
                self._passed_over[group] = left
            else:
                del self._passed_over[group]


def _group_of(candidate: Candidate) -> _Group:
    """A group of gangs counts as of the namespace of its first."""
    return candidate.subject.keys[0].partition("/")[0], candidate.online


def _attempts_of(candidate: Candidate) -> int:
    return 1 + (candidate.asks - 1) // _ASKS


def _part_of(number: int) -> int:
    return max(number // _PART, 1)
