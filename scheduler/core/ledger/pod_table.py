"""Charged pods by slot: a place in arrays that a pod keeps while it is charged, and that is used again after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.residents import Residents, flags_of
from scheduler.core.ledger.use_table import UseTable
from scheduler.core.snapshot.snapshot import ClusterSnapshot

_Kind = TypeVar("_Kind", bound=np.generic)


class _Facts(msgspec.Struct, eq=False):
    """What rules read of each slot; `nodes` are rows of the UseTable, −1 for a free slot."""

    nodes: npt.NDArray[np.int32]
    classes: npt.NDArray[np.int32]
    subjects: npt.NDArray[np.int32]
    queues: npt.NDArray[np.int32]
    flags: npt.NDArray[np.uint8]
    priorities: npt.NDArray[np.int64]
    outer_priorities: npt.NDArray[np.int64]
    started: npt.NDArray[np.float64]

    def cut(self, size: int) -> _Facts:
        """The first `size` slots."""
        return _Facts(*(getattr(self, name)[:size] for name in self.__struct_fields__))

    def grown(self, size: int) -> _Facts:
        """With room for `size` slots more."""
        return _Facts(
            _longer(self.nodes, size),
            _longer(self.classes, size),
            _longer(self.subjects, size),
            _longer(self.queues, size),
            _longer(self.flags, size),
            _longer(self.priorities, size),
            _longer(self.outer_priorities, size),
            _longer(self.started, size),
        )


def _longer(array: npt.NDArray[_Kind], size: int) -> npt.NDArray[_Kind]:
    return np.concatenate([array, np.zeros(size, array.dtype)])


def _no_facts() -> _Facts:
    numbers, flags = np.zeros(0, np.int32), np.zeros(0, np.uint8)
    priorities = np.zeros(0, np.int64)
    return _Facts(numbers, numbers, numbers, numbers, flags, priorities, priorities, np.zeros(0, np.float64))


class Slots:
    """The arrays are brought up to date when somebody reads them, so that charging a pod costs next to nothing."""

    def __init__(self) -> None:
        self._slot_of: dict[str, int] = {}
        self._charges: list[Charge | None] = []
        self._pods: list[Pod | None] = []
        self._vacant: list[int] = []
        self._stale: set[int] = set()
        self._facts = _no_facts()
        self._subjects: dict[WorkloadId, int] = {}
        self._subject_names: list[WorkloadId] = []
        self._queues: dict[str, int] = {}
        self._queue_names: list[str] = []

    def __len__(self) -> int:
        return len(self._slot_of)

    def get(self, uid: str) -> Charge | None:
        slot = self._slot_of.get(uid)
        return None if slot is None else self._charges[slot]

    def charges(self) -> Iterable[Charge]:
        return (charge for charge in self._charges if charge is not None)

    def any_of(self, uids: Iterable[str]) -> bool:
        """Whether any of these has a slot."""
        return not self._slot_of.keys().isdisjoint(uids)

    def put_all(self, charges: Sequence[Charge]) -> None:
        """Take a slot for each; none has one."""
        slots = [self._vacant.pop() for _ in range(min(len(self._vacant), len(charges)))]
        for slot, charge in zip(slots, charges, strict=False):
            self._charges[slot], self._pods[slot] = charge, charge.pod
        more = charges[len(slots) :]
        slots.extend(range(len(self._charges), len(self._charges) + len(more)))
        self._charges.extend(more)
        self._pods.extend([charge.pod for charge in more])
        self._slot_of.update(zip([charge.uid for charge in charges], slots, strict=True))
        self._stale.update(slots)

    def refresh(self) -> None:
        """All facts are read again: the table they refer to is another one."""
        self._stale.update(range(len(self._charges)))

    def members_by_node(self, job: WorkloadId, table: UseTable) -> dict[str, int]:
        """Node → how many of a job's pods are charged there."""
        self._catch_up(table)
        number = self._subjects.get(job)
        if number is None:
            return {}
        facts = self._facts.cut(len(self._charges))
        slots = np.flatnonzero((facts.subjects == number) & (facts.nodes >= 0))
        charges = (self._charges[slot] for slot in slots)
        return Counter(charge.node for charge in charges if charge is not None)

    def pop(self, uid: str) -> Charge | None:
        """Leave the slot; None where there is none."""
        slot = self._slot_of.pop(uid, None)
        if slot is None:
            return None
        charge, self._charges[slot], self._pods[slot] = self._charges[slot], None, None
        self._vacant.append(slot)
        self._stale.add(slot)
        return charge

    def residents(self, snapshot: ClusterSnapshot, table: UseTable) -> Residents:
        """The arrays, with rows and columns of the snapshot."""
        self._catch_up(table)
        # Slots of which no charge was ever read have no queue that their number could mean.
        facts = self._facts.cut(len(self._charges) if self._queue_names else 0)
        return Residents(
            pods=self._pods,
            charges=self._charges,
            slot_of=self._slot_of,
            rows=_rows(facts.nodes, snapshot, table),
            classes=facts.classes,
            class_requests=table.class_requests(snapshot.resources),
            class_scored=table.class_scored(snapshot.resources),
            priorities=facts.priorities,
            outer_priorities=facts.outer_priorities,
            subjects=facts.subjects,
            subject_names=self._subject_names,
            subject_numbers=self._subjects,
            queues=facts.queues,
            queue_names=self._queue_names,
            started=facts.started,
            flags=facts.flags,
        )

    def _catch_up(self, table: UseTable) -> None:
        if max(len(self._subjects), len(self._queues)) > 2 * len(self._charges) + 1024:
            self._subjects, self._subject_names = {}, []  # new ones, by which who keeps numbers can tell
            self._queues, self._queue_names = {}, []
            self.refresh()
        size = len(self._facts.nodes)
        if size < len(self._charges):
            self._facts = self._facts.grown(2 * len(self._charges) - size)
        if self._stale:
            self._read(sorted(self._stale), table)
            self._stale.clear()

    def _read(self, slots: Sequence[int], table: UseTable) -> None:
        """The facts of these slots again, one array after the other."""
        charged = [(slot, charge) for slot in slots if (charge := self._charges[slot]) is not None]
        charges, facts = [charge for _, charge in charged], self._facts
        facts.nodes[slots], facts.flags[slots] = -1, 0
        # A number of long ago is no index into what is kept by number since then.
        facts.classes[slots] = facts.subjects[slots] = facts.queues[slots] = 0
        at = np.array([slot for slot, _ in charged], np.int64)
        facts.nodes[at] = table.numbers_of_rows([charge.node for charge in charges])
        facts.classes[at] = table.numbers_of_classes([charge.pod_class for charge in charges])
        facts.subjects[at] = [self._subject(charge.job) for charge in charges]
        facts.queues[at] = [self._queue(charge.governed_by) for charge in charges]
        facts.flags[at] = [flags_of(charge) for charge in charges]
        pods = [charge.pod for charge in charges]
        facts.priorities[at] = [charge.priority for charge in charges]
        facts.outer_priorities[at] = [charge.outer_priority for charge in charges]
        facts.started[at] = [0.0 if pod is None else pod.status.started_seconds for pod in pods]

    def _queue(self, name: str) -> int:
        number = self._queues.get(name)
        if number is None:
            number = self._queues[name] = len(self._queue_names)
            self._queue_names.append(name)
        return number

    def _subject(self, job: WorkloadId) -> int:
        number = self._subjects.get(job)
        if number is None:
            number = self._subjects[job] = len(self._subject_names)
            self._subject_names.append(job)
        return number


def _rows(nodes: npt.NDArray[np.int32], snapshot: ClusterSnapshot, table: UseTable) -> npt.NDArray[np.int32]:
    """The snapshot's row of each slot; −1 for a free slot and for a node it does not have."""
    own = table.rows_of(snapshot.names)
    row_of = np.full(table.height + 1, -1, np.int32)
    known = np.flatnonzero(own >= 0)
    row_of[own[known]] = known
    return np.asarray(row_of[nodes])
