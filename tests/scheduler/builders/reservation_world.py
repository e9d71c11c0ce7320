"""A cluster in which pods end and others arrive, turn by turn, placed by the real core."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from scheduler_builders import candidate, gang, in_group, node, pod

from model.pod.pod import Pod
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.ledger import Charge, Ledger
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import Assignment, WorkingSnapshot
from scheduler.core.queueing.order import Ranking, in_order
from scheduler.core.queueing.reservation import Reservations, ReservePolicy
from scheduler.core.snapshot.podclass import class_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot, take

SLOTS = 8
"""How many pods a node of this world takes."""


def small(name: str, created: float = 0.0, priority: int = 0) -> Pod:
    return pod(name, batch_cpu=1000, created_seconds=created, priority=priority, below_prod=True)


def big(size: int, name: str = "train", created: float = 0.0, timeout: float = 1e6, each: int = 1000) -> Candidate:
    """A gang of `size` pods; 1000 is a slot."""
    own = {"gang": in_group(name), "created_seconds": created, "batch_cpu": each, "below_prod": True}
    return candidate([pod(f"{name}{i:03}", **own) for i in range(size)], gang(size, name, timeout_seconds=timeout))


class World:
    """One turn a second; `ends` is when each pod that is placed ends, `placed` when which workload was placed."""

    def __init__(self, nodes: int, most_reservations: int = 1, after: float = 5.0) -> None:
        self.nodes = {f"n{i:03}": node(f"n{i:03}", batch_cpu=SLOTS * 1000, pods=1000) for i in range(nodes)}
        self.ledger = Ledger()
        self.reservations = Reservations(ReservePolicy(after, most_reservations), self.ledger)
        self.waiting: dict[str, Candidate] = {}
        self.ends: dict[str, float] = {}
        self.placed: dict[str, float] = {}
        self.now = 0.0
        self.reserved_until: dict[str, float] = {}

    @property
    def snapshot(self) -> ClusterSnapshot:
        return take(self.nodes, self.ledger.nodes)

    def put(self, found: Pod, name: str, end: float) -> None:
        """A pod runs on a node until `end`."""
        self.ledger.assume([Charge(found.uid, name, class_of(found), pod=found)])
        self.ends[found.uid] = end

    def add(self, candidates: Iterable[Candidate]) -> None:
        self.waiting |= {item.subject: item for item in candidates}

    def working(self) -> WorkingSnapshot:
        snapshot = self.snapshot
        self.reservations.settle(self.waiting, snapshot, self.now)
        return WorkingSnapshot(snapshot, self.reservations.as_nominated(snapshot))

    def turn(self, run_seconds: float = 10.0) -> None:
        """What is due ends; then everything that waits is tried in order, as the cycle does."""
        self.now += 1.0
        for uid in [uid for uid, end in self.ends.items() if end <= self.now]:
            self.ledger.forget(uid)
            del self.ends[uid]
        working, ranking = self.working(), Ranking(self.now)
        for item in in_order(tuple(self.waiting.values()), lambda queue: Fraction(0), ranking):
            outcome = place(working, item)
            if isinstance(outcome, Placed):
                self._take(working, item, outcome.assignments, run_seconds)
            else:
                working = self._reserve(working, item, ranking)

    def _take(
        self, working: WorkingSnapshot, item: Candidate, assignments: tuple[Assignment, ...], run_seconds: float
    ) -> None:
        names = working.snapshot.names
        self.ledger.assume(
            Charge(assignment.uid, names[assignment.row], assignment.pod_class, assignment.pod_traits)
            for assignment in assignments
        )
        working.put(assignments)
        self.ends |= {assignment.uid: self.now + run_seconds for assignment in assignments}
        self.placed[item.subject] = self.now
        del self.waiting[item.subject]

    def _reserve(self, working: WorkingSnapshot, item: Candidate, ranking: Ranking) -> WorkingSnapshot:
        """The working snapshot from here on: with room kept for the workload where it is its turn."""
        known = item.subject in self.reserved_until
        kept, _ = self.reservations.reserve(working, item, self.ledger.residents(working.snapshot), ranking)
        if kept is None:
            return working
        rows = {working.snapshot.names[assignment.row] for assignment in kept.assignments}
        on_them = (self.ends[charge.uid] for charge in self.ledger.charges() if charge.node in rows)
        if not known:
            self.reserved_until[item.subject] = max(on_them, default=self.now)
        snapshot = self.snapshot
        return WorkingSnapshot(snapshot, self.reservations.as_nominated(snapshot))
