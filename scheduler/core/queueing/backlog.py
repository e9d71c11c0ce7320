"""Backlog: candidates that may be tried, those parked after a failure, and holds with the time since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Assembly, Candidate, Hold
from scheduler.core.queueing.backoff import BackoffPolicy, Parked, due_seconds, park, wake
from scheduler.core.queueing.news import Need, News

_MAY_PASS = (Reason.GANG_WAITING_FOR_MEMBERS, Reason.GANG_NOT_FOUND)
"""Holds that are ordinary while a job is being created, so they are told only once they last."""


class _Held(msgspec.Struct, frozen=True):
    hold: Hold
    since_seconds: float
    told: bool = False


class Backlog:
    """By subject. Times are Unix seconds; nothing here reads a clock."""

    def __init__(self, policy: BackoffPolicy, hold_grace_seconds: float) -> None:
        self._policy = policy
        self._grace = hold_grace_seconds
        self._candidates: dict[WorkloadId, Candidate] = {}
        self._parked: dict[WorkloadId, Parked] = {}
        self._held: dict[WorkloadId, tuple[_Held, ...]] = {}
        self._binding: dict[WorkloadId, int] = {}
        self._begun: set[WorkloadId] = set()

    def update(self, subject: WorkloadId, assembly: Assembly, now: float) -> None:
        """Take in what a subject's pods amount to now; a candidate that changed is woken, its back-off holds on."""
        if assembly.candidate is None:
            self._candidates.pop(subject, None)
            if subject not in self._binding:
                self._parked.pop(subject, None)
        elif self._candidates.get(subject) != assembly.candidate:
            self._candidates[subject] = assembly.candidate
            self.wake([subject])
        if assembly.candidate is not None and assembly.candidate.begun:
            self._begun.add(subject)
        else:
            self._begun.discard(subject)
        before = {item.hold: item for item in self._held.pop(subject, ())}
        if assembly.holds:
            self._held[subject] = tuple(before.get(hold) or _Held(hold, now) for hold in assembly.holds)

    def wake(self, subjects: Iterable[WorkloadId] | None = None, news: News | None = None) -> None:
        """Something may help these parked subjects, or all; `news` reaches those alone whose need it serves."""
        for subject in tuple(self._parked if subjects is None else subjects):
            if subject in self._parked:
                self._parked[subject] = wake(self._parked[subject], news)

    def park(self, subject: WorkloadId, now: float, *, woken: bool = False, need: Need | None = None) -> None:
        """One more failure, for want of `need`; `woken` where the back-off alone is to pass before the next attempt."""
        self._parked[subject] = park(self._parked.get(subject), self._policy, now, woken=woken, need=need)

    def retell(self, subject: WorkloadId, now: float) -> None:
        """What was told about a subject was not heard: once more after the first back-off."""
        self.wake([subject])
        if subject in self._held:
            later = now + self._policy.first_seconds
            self._held[subject] = tuple(_Held(item.hold, later) if item.told else item for item in self._held[subject])

    def binding_started(self, subject: WorkloadId) -> None:
        """The subject is left alone until its bindings are through."""
        self._binding[subject] = self._binding.get(subject, 0) + 1

    def binding_done(self, subject: WorkloadId) -> None:
        remaining = self._binding.pop(subject, 1) - 1
        if remaining:
            self._binding[subject] = remaining
        elif subject not in self._candidates:
            self._parked.pop(subject, None)

    def ready(self, now: float) -> list[Candidate]:
        """Candidates that may be tried now, in no particular order."""
        return [
            candidate
            for subject, candidate in self._candidates.items()
            if subject not in self._binding and self._due(subject) <= now
        ]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All that could be placed, parked ones included."""
        return tuple(self._candidates.values())

    @property
    def begun(self) -> tuple[Candidate, ...]:
        """Gangs bound in part, those that rest or whose bindings are under way included."""
        return tuple(self._candidates[subject] for subject in sorted(self._begun))

    @property
    def by_subject(self) -> Mapping[WorkloadId, Candidate]:
        """All that could be placed, by subject; a view that follows the backlog."""
        return self._candidates

    @property
    def parked(self) -> int:
        """How many wait after a failure."""
        return len(self._parked)

    @property
    def held(self) -> int:
        """How many pods or gangs cannot be tried."""
        return sum(len(items) for items in self._held.values())

    def take_holds(self, now: float) -> list[Hold]:
        """Holds to be told now, each once."""
        told: list[Hold] = []
        for subject, items in self._held.items():
            if any(self._telling(item) <= now for item in items):
                told.extend(item.hold for item in items if self._telling(item) <= now)
                self._held[subject] = tuple(
                    _Held(item.hold, item.since_seconds, item.told or self._telling(item) <= now) for item in items
                )
        return told

    def next_due(self) -> float | None:
        """Unix time at which time alone makes something ready or told; None where nothing does."""
        waiting = self._candidates.keys() - self._binding.keys()
        parked = [self._due(subject) for subject in self._parked if subject in waiting]
        holds = [self._telling(item) for items in self._held.values() for item in items if not item.told]
        return min((*parked, *holds), default=None)

    def _due(self, subject: WorkloadId) -> float:
        parked = self._parked.get(subject)
        return due_seconds(parked, self._policy) if parked else 0.0

    def _telling(self, item: _Held) -> float:
        if item.told:
            return float("inf")
        return item.since_seconds + (self._grace if item.hold.reason in _MAY_PASS else 0.0)
