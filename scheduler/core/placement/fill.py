"""Filling: members by group onto rows, each group against what those before it left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TypeAlias

import msgspec
import numpy as np

from scheduler.core.placement.working_snapshot import Assignment, ClassResult, Requester, WorkingSnapshot
from scheduler.core.scores.policy import ScorePolicy
from scheduler.core.scores.relative_scores import ScoredPod
from scheduler.core.snapshot.podclass import PodClass, PodTraits
from scheduler.core.snapshot.snapshot import Amounts, Mask

Chooser: TypeAlias = Callable[[Amounts, int], Amounts]
"""Room by row and how many members → a row for each, ascending; fewer where there is no more room."""


class Group(msgspec.Struct, frozen=True):
    """Members that every filter treats alike; `gang` is whose minimum they count for."""

    pod_class: PodClass
    uids: tuple[str, ...]
    member_traits: tuple[PodTraits, ...]
    gang: str = ""

    def after(self, number: int) -> Group:
        """Without its first members."""
        return Group(self.pod_class, self.uids[number:], self.member_traits[number:], self.gang)

    def assignments(self, rows: Amounts) -> list[Assignment]:
        """Its first members on these rows."""
        pod_class = self.pod_class
        return [
            Assignment(uid, row, pod_class, pod_traits)
            for uid, row, pod_traits in zip(self.uids, rows.tolist(), self.member_traits, strict=False)
        ]


class FillOptions(msgspec.Struct, frozen=True, eq=False):
    """In whose name rows are asked for, how they are chosen, and `within` which rows (None: all)."""

    requester: Requester
    policy: ScorePolicy
    choose: Chooser
    within: Mask | None = None


class FillResult(msgspec.Struct, frozen=True):
    """How far filling got: the assignments, the members without one, and the first group that ran short."""

    assignments: tuple[Assignment, ...]
    rest: tuple[Group, ...]
    short: Group | None


class PlacementTrial:
    """A working snapshot in which assignments are tried: on leaving the `with` block it is as it was before."""

    def __init__(self, working: WorkingSnapshot) -> None:
        self._working = working
        self._put: list[Assignment] = []
        self._waiting: list[Assignment] = []

    def __enter__(self) -> PlacementTrial:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._put:
            self._working.remove(self._put)

    def assignment(self, assignments: Sequence[Assignment]) -> None:
        """These are there, as soon as anybody looks."""
        self._waiting.extend(assignments)

    @property
    def working(self) -> WorkingSnapshot:
        """With all assignments tried so far."""
        if self._waiting:
            self._working.put(self._waiting)
            self._put.extend(self._waiting)
            self._waiting.clear()
        return self._working


def fill(
    trial: PlacementTrial, groups: Iterable[Group], limits: Mapping[str, int], how: FillOptions, *, whole: bool = False
) -> FillResult:
    """Place members group after group, up to `limits` members of each gang; `whole`: till one of them runs short."""
    assignments: list[Assignment] = []
    rest: list[Group] = []
    short: Group | None = None
    left = dict(limits)
    for group in groups:
        want = min(len(group.uids), left[group.gang])
        found = _assignments(trial, group, want, how) if want > 0 else []
        left[group.gang] -= len(found)
        assignments.extend(found)
        if len(found) < len(group.uids):
            rest.append(group.after(len(found)))
        if len(found) < want and short is None:
            short = group.after(len(found))
            if whole:
                break
    return FillResult(tuple(assignments), tuple(rest), short)


def _assignments(trial: PlacementTrial, group: Group, want: int, how: FillOptions) -> list[Assignment]:
    outlook = trial.working.outlook(group.pod_class, group.member_traits[0], how.requester)
    if outlook.apart:
        return _one_by_one(trial, group, want, how)
    room = outlook.room if how.within is None else np.where(how.within, outlook.room, 0)
    assignments = group.assignments(how.choose(room, want))
    trial.assignment(assignments)
    return assignments


def _one_by_one(trial: PlacementTrial, group: Group, want: int, how: FillOptions) -> list[Assignment]:
    """Each to the row that scores best, as lone pods: where one is decides where the next may be."""
    assignments: list[Assignment] = []
    for uid, pod_traits in zip(group.uids[:want], group.member_traits, strict=False):
        row = best_row(trial.working, ScoredPod(group.pod_class, pod_traits, how.policy), how)
        if row < 0:
            break
        assignments.append(Assignment(uid, row, group.pod_class, pod_traits))
        trial.assignment(assignments[-1:])
    return assignments


def best_row(working: WorkingSnapshot, asker: ScoredPod, how: FillOptions) -> int:
    """The best row for one pod; −1 where there is none."""
    outlook = working.outlook(asker.pod_class, asker.pod_traits, how.requester)
    if how.within is not None:
        outlook = ClassResult(np.where(how.within, outlook.room, 0))
    return working.best(asker, outlook)
