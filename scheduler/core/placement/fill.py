"""Filling: members by group onto rows, each group against what those before it left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TypeAlias

import msgspec
import numpy as np

from scheduler.core.picture.podclass import Kin, PodClass
from scheduler.core.picture.snapshot import Amounts, Mask
from scheduler.core.placement.working_snapshot import Outlook, Scene, Seat, Standing
from scheduler.core.scores.cluster import Asker
from scheduler.core.scores.policy import ScorePolicy

Chooser: TypeAlias = Callable[[Amounts, int], Amounts]
"""Room by row and how many members → a row for each, ascending; fewer where there is no more room."""


class Group(msgspec.Struct, frozen=True):
    """Members that every filter treats alike; `gang` is whose minimum they count for."""

    pod_class: PodClass
    uids: tuple[str, ...]
    kins: tuple[Kin, ...]
    gang: str = ""

    def after(self, number: int) -> Group:
        """Without its first members."""
        return Group(self.pod_class, self.uids[number:], self.kins[number:], self.gang)

    def seats(self, rows: Amounts) -> list[Seat]:
        """Its first members on these rows."""
        pod_class = self.pod_class
        return [
            Seat(uid, row, pod_class, kin) for uid, row, kin in zip(self.uids, rows.tolist(), self.kins, strict=False)
        ]


class How(msgspec.Struct, frozen=True, eq=False):
    """In whose name rows are asked for, how they are chosen, and `within` which rows (None: all)."""

    standing: Standing
    policy: ScorePolicy
    choose: Chooser
    within: Mask | None = None


class Filling(msgspec.Struct, frozen=True):
    """How far filling got: the seats, the members without one, and the first group that ran short."""

    seats: tuple[Seat, ...]
    rest: tuple[Group, ...]
    short: Group | None


class Trial:
    """A scene in which seats are tried: on leaving the `with` block it is as it was before."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._put: list[Seat] = []
        self._waiting: list[Seat] = []

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._put:
            self._scene.remove(self._put)

    def seat(self, seats: Sequence[Seat]) -> None:
        """These are there, as soon as anybody looks."""
        self._waiting.extend(seats)

    @property
    def scene(self) -> Scene:
        """With all seats tried so far."""
        if self._waiting:
            self._scene.put(self._waiting)
            self._put.extend(self._waiting)
            self._waiting.clear()
        return self._scene


def fill(trial: Trial, groups: Iterable[Group], limits: Mapping[str, int], how: How) -> Filling:
    """Seat members group after group, up to `limits` members of each gang."""
    seats: list[Seat] = []
    rest: list[Group] = []
    short: Group | None = None
    left = dict(limits)
    for group in groups:
        want = min(len(group.uids), left[group.gang])
        found = _seats(trial, group, want, how) if want > 0 else []
        left[group.gang] -= len(found)
        seats.extend(found)
        if len(found) < len(group.uids):
            rest.append(group.after(len(found)))
        if len(found) < want and short is None:
            short = group.after(len(found))
    return Filling(tuple(seats), tuple(rest), short)


def _seats(trial: Trial, group: Group, want: int, how: How) -> list[Seat]:
    outlook = trial.scene.outlook(group.pod_class, group.kins[0], how.standing)
    if outlook.apart:
        return _one_by_one(trial, group, want, how)
    room = outlook.room if how.within is None else np.where(how.within, outlook.room, 0)
    seats = group.seats(how.choose(room, want))
    trial.seat(seats)
    return seats


def _one_by_one(trial: Trial, group: Group, want: int, how: How) -> list[Seat]:
    """Each to the row that scores best, as lone pods: where one is decides where the next may be."""
    seats: list[Seat] = []
    for uid, kin in zip(group.uids[:want], group.kins, strict=False):
        row = best_row(trial.scene, Asker(group.pod_class, kin, how.policy), how)
        if row < 0:
            break
        seats.append(Seat(uid, row, group.pod_class, kin))
        trial.seat(seats[-1:])
    return seats


def best_row(scene: Scene, asker: Asker, how: How) -> int:
    """The best row for one pod; −1 where there is none."""
    outlook = scene.outlook(asker.pod_class, asker.kin, how.standing)
    if how.within is not None:
        outlook = Outlook(np.where(how.within, outlook.room, 0))
    return scene.best(asker, outlook)
