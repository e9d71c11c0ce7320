"""Parked workloads by what they need, so that news is weighed once for all that lack the same.

Thousands lack the same, and news comes with each turn: what wakes them is noted of the group, and who of it is due is
known without a look at the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from heapq import heapify, heappop, heappush
from itertools import count

import msgspec

from model.workload import WorkloadId
from scheduler.core.queueing.backoff import BackoffPolicy, Parked, Served, due_seconds, park, served_by, wake
from scheduler.core.queueing.news import Need, News
from scheduler.core.queues.headroom import BookVersion

_SHORT_LINE = 4
_LINE_SECONDS = 60.0
"""So long a line is judged by its first: then all are looked at, and told what holds by then."""
_SLACK = 1_024
"""So many times that are of no use any more are carried along."""


class _Group(msgspec.Struct, eq=False):
    """Who lacks the same: not woken, woken once the back-off is over, and woken at once. Those of one `line` are alike,
    and were looked at one by one since it was `begun`.
    """

    need: Need | None
    line: Hashable = None
    begun: float = float("inf")
    asleep: set[WorkloadId] = msgspec.field(default_factory=set)
    later: set[WorkloadId] = msgspec.field(default_factory=set)
    at_once: set[WorkloadId] = msgspec.field(default_factory=set)

    @property
    def empty(self) -> bool:
        return not (self.asleep or self.later or self.at_once)

    def leave(self, subject: WorkloadId) -> None:
        for part in (self.asleep, self.later, self.at_once):
            part.discard(subject)


class _Line(msgspec.Struct, frozen=True, eq=False):
    """Whose first one is looked at, and which is the last."""

    group: _Group
    last: WorkloadId


class ParkedWorkloads:
    """By subject. Times are Unix seconds; nothing here reads a clock. `order` is that within a line."""

    def __init__(self, policy: BackoffPolicy, order: Callable[[WorkloadId], tuple[float, str]] | None = None) -> None:
        self._order = order
        self._lines: dict[WorkloadId, _Line] = {}
        self._trailing: set[WorkloadId] = set()
        self._policy = policy
        self._parked: dict[WorkloadId, Parked] = {}
        self._group_of: dict[WorkloadId, _Group] = {}
        self._groups: dict[Hashable, _Group] = {}
        self._times: list[tuple[float, int, WorkloadId, Parked]] = []
        self._numbers = count()
        self._over: set[WorkloadId] = set()
        self._newest = _Group(None)

    def __len__(self) -> int:
        return len(self._parked)

    def __contains__(self, subject: WorkloadId) -> bool:
        return subject in self._parked

    def get(self, subject: WorkloadId) -> Parked | None:
        """How a subject is parked, with what has woken it since."""
        parked = self._parked.get(subject)
        return None if parked is None else wake(parked, self._served(subject))

    def park(self, subject: WorkloadId, now: float, *, woken: bool = False, need: Need | None = None) -> None:
        """One more failure, as `backoff.park` has it."""
        parked = park(self._parked.get(subject), self._policy, now, woken=woken, need=need)
        self._leave(subject)
        self._parked[subject] = parked
        group = self._group_of[subject] = self._group(need, None)
        (group.later if woken else group.asleep).add(subject)
        self._look_at(subject, due_seconds(parked, self._policy))

    def line_up(self, subject: WorkloadId, line: Hashable, now: float) -> None:
        """Of this line, with which it was just refused, are those behind it as well: they wait on for what it needs."""
        own, before = self._group_of.get(subject), self._resolved(subject)
        if own is None:
            return
        group = self._group(own.need, line)
        if own is not group:
            self._leave(subject)
            self._group_of[subject] = group
            group.asleep.add(subject)
            group.begun = min(group.begun, now)
        if before is None:
            return
        behind = before.group.at_once - self._over - {before.last}
        before.group.at_once -= behind
        group.asleep |= behind
        group.begun = min(group.begun, before.group.begun)
        if before.group is not group:
            self._group_of.update(dict.fromkeys(behind, group))
            self._forget_empty(before.group)

    def leads(self, subject: WorkloadId) -> bool:
        """Whether others of its line are not looked at for its sake."""
        return subject in self._lines

    def trails(self, subject: WorkloadId) -> bool:
        """Whether it is the last of a line whose first had no turn yet."""
        return subject in self._trailing

    def release(self, subject: WorkloadId) -> set[WorkloadId]:
        """Those behind it, which are to be looked at one by one."""
        before = self._resolved(subject)
        return before.group.at_once - self._over - {before.last, subject} if before is not None else set()

    def alone(self, subject: WorkloadId) -> None:
        """It stands in no line any more."""
        group = self._group_of.get(subject)
        if group is None or group.line is None:
            return
        served, over = self._served(subject), subject in self._over
        self._leave(subject)
        other = self._group_of[subject] = self._group(group.need, None)
        parts = {Served.NOT: other.asleep, Served.LATER: other.later, Served.AT_ONCE: other.at_once}
        parts[served].add(subject)
        self._over |= {subject} if over else set()

    def pop(self, subject: WorkloadId) -> None:
        """It waits no more."""
        if self._parked.pop(subject, None) is not None:
            self._leave(subject)

    def wake(self, subject: WorkloadId, news: News | None = None) -> None:
        """Something may help this one, where it is parked."""
        group = self._group_of.get(subject)
        if group is None:
            return
        served = served_by(group.need, news)
        if served is Served.AT_ONCE:
            group.leave(subject)
            group.at_once.add(subject)
        elif served is Served.LATER and subject in group.asleep:
            self._back_off(group, [subject])

    def tell(self, news: News | None, stands: Callable[[BookVersion], bool] = lambda version: False) -> None:
        """Something may help those whose need it serves; None: all, once their back-off is over.

        `stands`: whether books are as they were, so that whom they refused they refuse still.
        """
        known: dict[int, Served] = {}
        for group in self._groups.values():
            if not (group.asleep or group.later):
                continue
            served = known.get(id(group.need))
            if served is None:
                served = known[id(group.need)] = _reached(group.need, news, stands)
            if served is Served.AT_ONCE:
                group.at_once |= group.asleep
                group.at_once |= group.later
                group.asleep.clear()
                group.later.clear()
            elif served is Served.LATER and group.asleep:
                self._back_off(group, list(group.asleep))

    def due(self, now: float) -> set[WorkloadId]:
        """Who may be tried again by now."""
        while self._times and self._times[0][0] <= now:
            _, _, subject, parked = heappop(self._times)
            if self._parked.get(subject) is parked:
                self._over.add(subject)
        self._lines.clear()
        self._trailing.clear()
        parts = [self._ahead(group, now) for group in self._groups.values() if group.at_once]
        return self._over.union(*parts)

    def _ahead(self, group: _Group, now: float) -> Collection[WorkloadId]:
        """Of a line the first and the last: what the first is told holds for those between, until it is told otherwise,
        and while the last has not had its turn the others of its queue are behind it.
        """
        members, order = group.at_once, self._order
        if group.line is None or order is None or len(members) < _SHORT_LINE or now - group.begun >= _LINE_SECONDS:
            return members
        first, last = min(members, key=order), max(members, key=order)
        self._lines[first] = _Line(group, last)
        self._trailing.add(last)
        return (first, last)

    def next_due(self, waits: Callable[[WorkloadId], bool]) -> float | None:
        """When the first of those that wait may be tried again; None where none of them is parked.

        Who does not wait is to be shown again once it does.
        """
        found = [self._due(subject) for subject in self._over if waits(subject)]
        for group in self._groups.values():
            if group.at_once:
                found += [self._parked[subject].since_seconds for subject in group.at_once if waits(subject)]
        while self._times:
            due, _, subject, parked = self._times[0]
            if self._parked.get(subject) is parked and waits(subject):
                found.append(due)
                break
            heappop(self._times)
        return min(found, default=None)

    def show(self, subject: WorkloadId) -> None:
        """It may be looked for by `next_due` from now on."""
        if subject in self._parked and subject not in self._over:
            self._look_at(subject, self._due(subject))

    def _resolved(self, subject: WorkloadId) -> _Line | None:
        before = self._lines.pop(subject, None)
        if before is not None:
            self._trailing.discard(before.last)
        return before

    def _group(self, need: Need | None, line: Hashable) -> _Group:
        newest = self._newest
        if newest.need is need and newest.line == line and not newest.empty:
            return newest
        key = _key(need), line
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(need, line)
        self._newest = group
        return group

    def _look_at(self, subject: WorkloadId, due: float) -> None:
        heappush(self._times, (due, next(self._numbers), subject, self._parked[subject]))
        if len(self._times) > _SLACK + 2 * len(self._parked):
            self._forget_the_past()

    def _forget_the_past(self) -> None:
        """Without the times of those that were parked again since, or are gone."""
        left = ((subject, parked) for subject, parked in self._parked.items() if subject not in self._over)
        self._times = [(self._due(subject), next(self._numbers), subject, parked) for subject, parked in left]
        heapify(self._times)

    def _back_off(self, group: _Group, subjects: list[WorkloadId]) -> None:
        group.later.update(subjects)
        group.asleep.difference_update(subjects)
        for subject in subjects:
            self.show(subject)

    def _served(self, subject: WorkloadId) -> Served:
        group = self._group_of[subject]
        if subject in group.at_once:
            return Served.AT_ONCE
        return Served.LATER if subject in group.later else Served.NOT

    def _due(self, subject: WorkloadId) -> float:
        return due_seconds(wake(self._parked[subject], self._served(subject)), self._policy)

    def _leave(self, subject: WorkloadId) -> None:
        self._over.discard(subject)
        group = self._group_of.pop(subject, None)
        if group is not None:
            group.leave(subject)
            self._forget_empty(group)

    def _forget_empty(self, group: _Group) -> None:
        key = _key(group.need), group.line
        if group.empty and self._groups.get(key) is group:
            del self._groups[key]


def _reached(need: Need | None, news: News | None, stands: Callable[[BookVersion], bool]) -> Served:
    """Not where books alone refused a workload, which stand, and the news is that something became free."""
    version = need.version if need is not None else None
    freed = news is not None and need is not None and not need.kinds.value & news.happened.value
    return Served.NOT if freed and version is not None and stands(version) else served_by(need, news)


def _key(need: Need | None) -> Hashable:
    if need is None:
        return None
    least = None if need.least is None else frozenset(need.least.items())
    return need.kinds.value, need.resources, least, need.version
