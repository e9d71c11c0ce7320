"""The Ledger: the single source of what is used, per node and per queue.

Every change is a transaction that returns what undoes it. Pods bound by other schedulers are charged like ours;
a deleting pod stays charged until it is gone, a terminal one is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from model.placement import PlacementState
from model.pod import Pod
from model.queue import DEFAULT_QUEUE
from scheduler.core.podclass import PodClass, class_of


class Charge(msgspec.Struct, frozen=True):
    """One pod's use of one node, in the name of one queue; `pod_class.request` is what it takes."""

    uid: str
    node: str
    pod_class: PodClass
    queue: str = DEFAULT_QUEUE
    state: PlacementState = PlacementState.ASSUMED


class Change(msgspec.Struct, frozen=True):
    """`uid` is charged so from now on; None: not at all."""

    uid: str
    charge: Charge | None


class Ledger:
    """Amounts in base units; `changed_nodes` collects the nodes whose sums changed since it was last cleared."""

    def __init__(self) -> None:
        self._charges: dict[str, Charge] = {}
        self._nodes: dict[str, dict[str, int]] = {}
        self._queues: dict[str, dict[str, int]] = {}
        self.changed_nodes: set[str] = set()

    @property
    def nodes(self) -> Mapping[str, Mapping[str, int]]:
        """Node → resource → amount used, assumed pods included."""
        return self._nodes

    def used(self, queue: str) -> Mapping[str, int]:
        """Resource → amount the queue's pods use, assumed ones included."""
        return self._queues.get(queue, {})

    def charge(self, uid: str) -> Charge | None:
        """How a pod is charged, None where it is not."""
        return self._charges.get(uid)

    def assume(self, charges: Iterable[Charge]) -> tuple[Change, ...]:
        """Charge pods that are about to be bound; returns the undo. Raises ValueError where one is charged already."""
        wanted = tuple(charges)
        for charge in wanted:
            if charge.uid in self._charges:
                raise ValueError(f"pod {charge.uid} is charged already")
        return self.apply(Change(charge.uid, charge) for charge in wanted)

    def confirm(self, charge: Charge) -> tuple[Change, ...]:
        """The API server says where the pod is, whatever was assumed; returns the undo."""
        bound = msgspec.structs.replace(charge, state=PlacementState.BOUND)
        return () if self._charges.get(charge.uid) == bound else self.apply([Change(charge.uid, bound)])

    def forget(self, uid: str) -> tuple[Change, ...]:
        """The pod uses nothing any more; returns the undo, empty where it was not charged."""
        return self.apply([Change(uid, None)]) if uid in self._charges else ()

    def apply(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Make the changes in order; returns those that undo them, to be given to `apply` again."""
        undo: list[Change] = []
        for change in changes:
            before = self._charges.pop(change.uid, None)
            undo.append(Change(change.uid, before))
            if before is not None:
                self._add(before, -1)
            if change.charge is not None:
                self._charges[change.uid] = change.charge
                self._add(change.charge, 1)
        return tuple(reversed(undo))

    def _add(self, charge: Charge, sign: int) -> None:
        self.changed_nodes.add(charge.node)
        for sums, key in ((self._nodes, charge.node), (self._queues, charge.queue)):
            amounts = sums.setdefault(key, {})
            for resource, amount in charge.pod_class.request:
                amounts[resource] = amounts.get(resource, 0) + sign * amount
                if amounts[resource] == 0:
                    del amounts[resource]
            if not amounts:
                del sums[key]


def charge_of(pod: Pod, queue: str) -> Charge | None:
    """What a pod uses by its own word: nothing while it has no node or once it is terminal."""
    if not pod.node_name or pod.terminal:
        return None
    return Charge(pod.uid, pod.node_name, class_of(pod), queue, PlacementState.BOUND)
