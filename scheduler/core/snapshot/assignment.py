"""Assignments: pods on rows of a snapshot, tried, placed, or nominated; and in whose name room is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from model.workload import WorkloadId
from scheduler.core.snapshot.podclass import PodClass, PodTraits


class Requester(msgspec.Struct, frozen=True):
    """The workload that asks for room: its own nominations and those of lower priority do not stand in its way.

    Nor does what spares online workloads where it is `online`: outside the mid, batch and free bands.
    """

    subject: WorkloadId
    priority: int
    online: bool = False


NO_ROW = -1
"""Of a pod that has quota and no node."""


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """One pod on the node of `row`."""

    uid: str
    row: int
    pod_class: PodClass
    pod_traits: PodTraits = PodTraits()


class Nominated(msgspec.Struct, frozen=True):
    """Room kept for a workload until its victims are gone, or until enough has ended by itself.

    `spares_online`: no online workload waits for it, whatever the priorities. Whoever waits says how long.
    """

    subject: WorkloadId
    priority: int
    assignments: tuple[Assignment, ...]
    spares_online: bool = False

    def binds(self, requester: Requester) -> bool:
        """Whether this room is taken for who asks."""
        return (
            self.subject != requester.subject
            and self.priority >= requester.priority
            and not (self.spares_online and requester.online)
        )


def net(assigned: Iterable[tuple[Sequence[Assignment], int]]) -> Iterator[tuple[Assignment, int]]:
    """Pods that came once more than they went, and the other way round."""
    net: dict[str, tuple[Assignment, int]] = {}
    for assignments, count in assigned:
        for assignment in assignments:
            net[assignment.uid] = (assignment, net.get(assignment.uid, (assignment, 0))[1] + count)
    return (pair for pair in net.values() if pair[1])
