"""The cluster as one turn sees it: a snapshot, and what was placed, nominated or taken away on top of it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from scheduler.core import fit
from scheduler.core.podclass import Kin, PodClass
from scheduler.core.snapshot import Amounts, ClusterSnapshot


class Standing(msgspec.Struct, frozen=True):
    """Who asks for room: nominations of its own subject do not stand in its way, nor do those of lower priority."""

    subject: str
    priority: int


class Seat(msgspec.Struct, frozen=True):
    """One pod on the node of `row`."""

    uid: str
    row: int
    pod_class: PodClass
    kin: Kin = Kin()


class Nominated(msgspec.Struct, frozen=True):
    """Room kept for a workload until its victims are gone, or until enough has ended by itself."""

    subject: str
    priority: int
    seats: tuple[Seat, ...]


class Scene:
    """Rows and columns are the snapshot's; `free` (node × resource) is what is left, nominations not counted."""

    def __init__(self, snapshot: ClusterSnapshot, nominated: Iterable[Nominated] = ()) -> None:
        self.snapshot = snapshot
        self.free: Amounts = snapshot.free
        self.nominated = tuple(nominated)

    def room(self, pod_class: PodClass, kin: Kin, standing: Standing) -> Amounts:
        """How many more pods of the class each row takes, all filters considered."""
        return fit.counts(self.snapshot, self.free_for(standing), pod_class)

    def report(self, pod_class: PodClass, kin: Kin, standing: Standing) -> fit.FitReport:
        """Why which number of nodes takes no more pod of the class."""
        return fit.report(self.snapshot, self.free_for(standing), pod_class)

    def free_for(self, standing: Standing) -> Amounts:
        """What is left for one who asks: others' nominations of equal or higher priority count as used."""
        free = self.free
        for held in self.nominated:
            if held.subject != standing.subject and held.priority >= standing.priority:
                free = free - self._taken(held.seats)
        return free

    def put(self, seats: Iterable[Seat]) -> None:
        """These pods are there from here on."""
        self.free = self.free - self._taken(seats)

    def remove(self, seats: Iterable[Seat]) -> None:
        """These pods are gone from here on."""
        self.free = self.free + self._taken(seats)

    def what_if(self) -> Scene:
        """An independent copy, to try something."""
        copy = Scene(self.snapshot, self.nominated)
        copy.free = self.free.copy()
        return copy

    def _taken(self, seats: Iterable[Seat]) -> Amounts:
        taken = np.zeros_like(self.free)
        for seat in seats:
            taken[seat.row] += fit.use(self.snapshot, seat.pod_class)
        return taken
