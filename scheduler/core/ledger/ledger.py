"""The Ledger: the single source of what is used, per node and per queue.

Every change is a transaction that returns what undoes it. Pods bound by other schedulers are charged like ours;
a deleting pod stays charged until it is gone, a terminal one is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from model.affinity import NOWHERE
from model.placement import PlacementState
from model.workload import WorkloadId
from scheduler.core.ledger.charge import Change, Charge, charge_of
from scheduler.core.ledger.pod_table import Slots
from scheduler.core.ledger.residents import Residents
from scheduler.core.ledger.use_table import UseTable
from scheduler.core.picture.podclass import Kin, PodClass
from scheduler.core.picture.snapshot import ClusterSnapshot

__all__ = ["Change", "Charge", "Ledger", "Move", "charge_of"]

_SLACK = 8192
"""So many nodes and classes that are of no use any more are carried along."""


class Move(msgspec.Struct, frozen=True, gc=False):
    """A pod that others' terms may see came to a node (`count` 1) or left it (−1)."""

    kin: Kin
    node: str
    count: int


class Ledger:
    """Amounts in base units; `with_terms` is how many charged pods have terms about other pods."""

    def __init__(self) -> None:
        self.nodes = UseTable()
        self.with_terms = 0
        self._slots = Slots()
        self._queues: dict[str, dict[str, int]] = {}
        self._followers: list[list[Move]] = []

    def __len__(self) -> int:
        return len(self._slots)

    def used(self, queue: str) -> Mapping[str, int]:
        """Resource → amount the queue's pods use, assumed ones included."""
        return self._queues.get(queue, {})

    def homes(self, job: WorkloadId) -> Mapping[str, int]:
        """Node → how many members of a job are charged there."""
        return self._slots.homes(job, self.nodes)

    def charge(self, uid: str) -> Charge | None:
        """How a pod is charged, None where it is not."""
        return self._slots.get(uid)

    def charges(self) -> Iterable[Charge]:
        """All charges, in no order that means anything."""
        return self._slots.charges()

    def assume(self, charges: Iterable[Charge]) -> tuple[Change, ...]:
        """Charge pods that are about to be bound; returns the undo. Raises ValueError where one is charged already."""
        wanted = tuple(charges)
        uids = [charge.uid for charge in wanted]
        for uid in uids if self._slots.any_of(uids) else ():
            if self._slots.get(uid) is not None:
                raise ValueError(f"pod {uid} is charged already")
        if len(set(uids)) != len(uids):
            raise ValueError("a pod is assumed twice")
        self._assume(wanted)
        return tuple([Change(uid, None) for uid in reversed(uids)])

    def confirm(self, charge: Charge) -> tuple[Change, ...]:
        """The API server says where the pod is, whatever was assumed; returns the undo."""
        if charge.state is not PlacementState.BOUND:
            charge = msgspec.structs.replace(charge, state=PlacementState.BOUND)
        return () if self._slots.get(charge.uid) == charge else self.apply([Change(charge.uid, charge)])

    def forget(self, uid: str) -> tuple[Change, ...]:
        """The pod uses nothing any more; returns the undo, empty where it was not charged."""
        return self.apply([Change(uid, None)]) if self._slots.get(uid) is not None else ()

    def apply(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Make the changes in order; returns those that undo them, to be given to `apply` again."""
        undo: list[Change] = []
        for change in changes:
            before = self._slots.pop(change.uid)
            undo.append(Change(change.uid, before))
            if before is not None:
                self.nodes.remove(before.node, before.pod_class)
                self._count(before.queue, before.pod_class, -1)
                self._moved((before,), -1)
            if change.charge is not None:
                self._assume((change.charge,))
        return tuple(reversed(undo))

    def residents(self, snapshot: ClusterSnapshot) -> Residents:
        """All charged pods as arrays; see there."""
        return self._slots.residents(snapshot, self.nodes)

    def follow(self) -> list[Move]:
        """A list that tells from here on who came and went; whoever asked for it clears what it has read."""
        self._followers.append([])
        return self._followers[-1]

    def unfollow(self, moves: list[Move]) -> None:
        """Tell this list nothing more."""
        self._followers = [each for each in self._followers if each is not moves]

    def _assume(self, charges: Sequence[Charge]) -> None:
        if max(self.nodes.classes, self.nodes.height) > _SLACK + 4 * len(self._slots):
            self.start_table_anew()
        self._slots.put_all(charges)
        for (pod_class, queue), group in _alike(charges):
            self.nodes.add([charge.node for charge in group], pod_class)
            self._count(queue, pod_class, len(group))
        self._moved(charges, 1)

    def start_table_anew(self) -> None:
        """Without the nodes and classes of long ago."""
        self.nodes = UseTable()
        self._slots.refresh()
        for charge in self._slots.charges():
            self.nodes.add((charge.node,), charge.pod_class)

    def _moved(self, charges: Sequence[Charge], count: int) -> None:
        for charge in charges:
            if charge.kin.affinity is not NOWHERE and charge.kin.affinity != NOWHERE:
                self.with_terms += count
        for moves in self._followers:
            moves.extend(Move(charge.kin, charge.node, count) for charge in charges)

    def _count(self, queue: str, pod_class: PodClass, number: int) -> None:
        """`number` pods of the class more in the queue; exact, however many."""
        amounts = self._queues.setdefault(queue, {})
        for resource, amount in pod_class.request:
            amounts[resource] = amounts.get(resource, 0) + number * amount
            if amounts[resource] == 0:
                del amounts[resource]
        if not amounts:
            del self._queues[queue]


def _alike(charges: Sequence[Charge]) -> Iterable[tuple[tuple[PodClass, str], Sequence[Charge]]]:
    """Charges by class and queue; mostly they are all alike."""
    first = charges[0] if charges else None
    if first is not None and all(c.pod_class is first.pod_class and c.queue == first.queue for c in charges):
        return [((first.pod_class, first.queue), charges)]
    groups: dict[tuple[PodClass, str], list[Charge]] = {}
    for charge in charges:
        groups.setdefault((charge.pod_class, charge.queue), []).append(charge)
    return groups.items()
