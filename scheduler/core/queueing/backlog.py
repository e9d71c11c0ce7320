"""Backlog: candidates that may be tried, those parked after a failure, and holds with the time since when."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import count

import msgspec

from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Assembly, Candidate, Hold
from scheduler.core.queueing.backoff import BackoffPolicy
from scheduler.core.queueing.news import Need, News
from scheduler.core.queueing.parking import ParkedWorkloads
from scheduler.core.queues.headroom import BookVersion

_MAY_PASS = (Reason.GANG_WAITING_FOR_MEMBERS, Reason.GANG_NOT_FOUND)
"""Holds that are ordinary while a job is being created, so they are told only once they last."""


class _Held(msgspec.Struct, frozen=True):
    hold: Hold
    since_seconds: float
    told: bool = False


class Backlog:
    """By subject. Times are Unix seconds; nothing here reads a clock. `stands` is as `ParkedWorkloads.tell` has it."""

    def __init__(self, policy: BackoffPolicy, hold_grace_seconds: float) -> None:
        self.stands: Callable[[BookVersion], bool] = lambda version: False
        self._policy = policy
        self._grace = hold_grace_seconds
        self._candidates: dict[WorkloadId, Candidate] = {}
        self._places: dict[WorkloadId, int] = {}
        self._ages: dict[WorkloadId, tuple[float, str]] = {}
        self._numbers = count()
        self._fresh: set[WorkloadId] = set()
        self._parked = ParkedWorkloads(policy, self._ages.__getitem__)
        self._held: dict[WorkloadId, tuple[_Held, ...]] = {}
        self._binding: dict[WorkloadId, int] = {}
        self._begun: set[WorkloadId] = set()

    def update(self, subject: WorkloadId, assembly: Assembly, now: float) -> None:
        """Take in what a subject's pods amount to now; a candidate that changed is woken, its back-off holds on."""
        if assembly.candidate is None:
            self._left(subject)
            if subject in self._binding:
                self._parked.alone(subject)
            else:
                self._parked.pop(subject)
        elif self._candidates.get(subject) != assembly.candidate:
            self._came(subject, assembly.candidate)
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
        if subjects is None:
            self._parked.tell(news, self.stands)
        else:
            for subject in tuple(subjects):
                self._parked.alone(subject)
                self._parked.wake(subject, news)

    def park(self, subject: WorkloadId, now: float, *, woken: bool = False, need: Need | None = None) -> None:
        """One more failure, for want of `need`; `woken` where the back-off alone is to pass before the next attempt."""
        self._parked.park(subject, now, woken=woken, need=need)
        self._fresh.discard(subject)

    def line_up(self, subject: WorkloadId, line: Hashable, now: float) -> None:
        """It was parked for lack of what all of its line lack, which are workloads of one queue that are alike but for
        their age: those behind it wait on.
        """
        self._parked.line_up(subject, line, now)

    def leads(self, subject: WorkloadId) -> bool:
        """Whether others of its line are judged by what comes of it."""
        return self._parked.leads(subject)

    def trails(self, subject: WorkloadId) -> bool:
        """Whether it is the last of a line whose first had no turn yet."""
        return self._parked.trails(subject)

    def release(self, subject: WorkloadId) -> list[Candidate]:
        """Those behind it, which are to be tried in this turn as well."""
        behind = self._parked.release(subject) & self._candidates.keys()
        return [self._candidates[each] for each in sorted(behind, key=self._places.__getitem__)]

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
            self._parked.pop(subject)
        else:
            self._parked.show(subject)

    def ready(self, now: float) -> list[Candidate]:
        """Candidates that may be tried now, in the order in which they came; of a line its first and its last."""
        due = (self._fresh | self._parked.due(now)) & self._candidates.keys()
        if self._binding:
            due -= self._binding.keys()
        return [self._candidates[subject] for subject in sorted(due, key=self._places.__getitem__)]

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
        parked = self._parked.next_due(lambda subject: subject in self._candidates and subject not in self._binding)
        holds = [self._telling(item) for items in self._held.values() for item in items if not item.told]
        return min(holds if parked is None else (parked, *holds), default=None)

    def _came(self, subject: WorkloadId, candidate: Candidate) -> None:
        if subject not in self._candidates:
            self._places[subject] = next(self._numbers)
            if subject in self._parked:
                self._parked.show(subject)
            else:
                self._fresh.add(subject)
        self._candidates[subject] = candidate
        self._ages[subject] = (candidate.workload.eligible_seconds, candidate.workload.uid)

    def _left(self, subject: WorkloadId) -> None:
        if self._candidates.pop(subject, None) is not None:
            del self._places[subject], self._ages[subject]
            self._fresh.discard(subject)

    def _telling(self, item: _Held) -> float:
        if item.told:
            return float("inf")
        return item.since_seconds + (self._grace if item.hold.reason in _MAY_PASS else 0.0)
