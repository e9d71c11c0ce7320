"""Seats: pods on rows of a snapshot, tried, placed, or nominated; and in whose name room is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from scheduler.core.picture.podclass import Kin, PodClass


class Standing(msgspec.Struct, frozen=True):
    """Who asks for room: nominations of its own subject do not stand in its way, nor do those of lower priority."""

    subject: str
    priority: int


class Seat(msgspec.Struct, frozen=True, gc=False):
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


def net(seated: Iterable[tuple[Sequence[Seat], int]]) -> Iterator[tuple[Seat, int]]:
    """Who came once more than it went, and the other way round."""
    net: dict[str, tuple[Seat, int]] = {}
    for seats, count in seated:
        for seat in seats:
            net[seat.uid] = (seat, net.get(seat.uid, (seat, 0))[1] + count)
    return (pair for pair in net.values() if pair[1])
