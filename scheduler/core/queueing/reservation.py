"""Room kept for the head of a queue that cannot be placed: what waits behind it fills in elsewhere.

Without it a large gang starves under a stream of small pods, each of which takes what the last one left. On the rows
that are chosen nothing of equal or lower priority is added, so what runs there only ends, and the head is placed no
later than when enough of it has. They are kept from turn to turn; one moves only to a row that has room for it at this
moment. So a place for a member counts for the head wherever it becomes free, and back-fill behind it never delays it;
only members larger than what runs may wait for their own rows while fragments elsewhere are filled in. A reservation
is a nomination for the order alone: it is not written to the API, and higher priority does not see it. Nor do online
workloads, those outside the mid, batch and free bands: whoever made the pods says how long they wait.

A gang that is bound in part has room for the rest kept at once and beside that number, from the turn in which it is
seen so: whoever takes it meanwhile would leave the gang holding room that nobody uses.

A head whose room has not come within its gang's timeout, an hour at most, gives it up, and its queue may try with
another: kept for ever, it would be room that nobody uses. Neither Koordinator nor kube-scheduler has the like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from model.workload import TopologyLevel, WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import Claim, ClaimedPod, ClaimKind, claimed
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.ledger.residents import Residents
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.queueing.future_fit import future_fit, minimum_of, will_fit
from scheduler.core.queueing.order import Ranking
from scheduler.core.queueing.reassign import reassign
from scheduler.core.snapshot.assignment import Assignment, Nominated
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import ClusterSnapshot


class ReservePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When room is kept for a workload that waits."""

    reserve_after_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="The head of a queue gets room kept for it once it has waited this long: six of the longest "
            "back-offs, in which ordinary comings and goings had their chance.",
        ),
    ] = 60.0
    most_reservations: Annotated[
        int,
        Meta(
            ge=0,
            le=1000,
            description="Workloads of one queue that have room kept at a time; 0 switches it off. Gangs bound in part "
            "have theirs kept beside it.",
        ),
    ] = 1
    longest_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=604_800,
            description="Room is kept no longer at a time, however long a gang says that it may wait: its author may "
            "wait for pods of his own, and others are kept from room that nobody uses.",
        ),
    ] = 3600.0


class _Reserved(msgspec.Struct, frozen=True):
    """For whom room is kept, and since when; the room itself is a claim in the ledger."""

    candidate: Candidate
    since_seconds: float


_Shape: TypeAlias = tuple[tuple[PodClass, ...], tuple[int, ...], int, tuple[TopologyLevel, ...], int]
_KIND = ClaimKind.RESERVED
_SEARCH_EVERY_SECONDS = 1.0
"""Rest after a vain search, so that many workloads that fit nowhere do not fill the turns with them."""


class Reservations:
    """By subject; Unix seconds. The room that is kept stands in the ledger."""

    def __init__(self, policy: ReservePolicy, ledger: Ledger) -> None:
        self._policy = policy
        self._ledger = ledger
        self._kept: dict[WorkloadId, _Reserved] = {}
        self._not_before: dict[WorkloadId, float] = {}
        self._hopeless: dict[_Shape, float] = {}
        self._vain: dict[WorkloadId, float] = {}
        self._search_from = 0.0

    @property
    def subjects(self) -> tuple[WorkloadId, ...]:
        """Those that have room kept, sorted."""
        return tuple(sorted(self._kept))

    def as_nominated(self, snapshot: ClusterSnapshot) -> tuple[Nominated, ...]:
        """The reservations as nominations in a snapshot that `settle` has seen."""
        return tuple(claim.on(snapshot.rows) for claim in self._ledger.claims(_KIND))

    def settle(
        self, candidates: Mapping[WorkloadId, Candidate], snapshot: ClusterSnapshot, now: float
    ) -> tuple[ClaimedPod, ...]:
        """Give up what is kept for workloads that are gone, changed or out of time, or on nodes that are gone.

        Returns the pods' room given up, which is news to others.
        """
        self._not_before = {subject: end for subject, end in self._not_before.items() if end > now}
        self._hopeless = {shape: end for shape, end in self._hopeless.items() if end > now}
        self._vain = {subject: end for subject, end in self._vain.items() if end > now}
        given_up: list[ClaimedPod] = []
        for subject in self.subjects:
            kept = self._kept[subject]
            late = self._until(kept) <= now
            if late or candidates.get(subject) != kept.candidate or self._claim(subject).nodes - snapshot.rows.keys():
                given_up.extend(self.drop(subject, now if late else None))
        return tuple(given_up)

    def drop(self, subject: WorkloadId, out_of_time: float | None = None) -> tuple[ClaimedPod, ...]:
        """Give up what is kept for a subject; `out_of_time` (now) where it is not to be reserved for at once again."""
        kept = self._kept.pop(subject, None)
        if out_of_time is not None:
            self._not_before[subject] = out_of_time + self._policy.reserve_after_seconds
        if kept is None:
            return ()
        claim = self._claim(subject)
        self._ledger.give_up(_KIND, subject)
        return claim.pods

    def hold(self, working: WorkingSnapshot, candidate: Candidate, residents: Residents, now: float) -> bool:
        """Keep the remaining assignments of a gang that is bound in part, where it fits or will; whether that is news.

        To be asked before anybody is placed, in the order of the queue.
        """
        subject = candidate.subject
        if subject in self._kept or self._not_before.get(subject, 0.0) > now:
            return False
        outcome = place(working, minimum_of(candidate))
        assignments = outcome.assignments if isinstance(outcome, Placed) else None
        if assignments is None and subject not in self._vain:
            assignments = future_fit(working, candidate, residents)
        if assignments is None:
            self._vain.setdefault(subject, now + _SEARCH_EVERY_SECONDS)
            return False
        self._keep(working, candidate, now, assignments)
        return True

    def reserve(
        self, working: WorkingSnapshot, candidate: Candidate, residents: Residents, ranking: Ranking
    ) -> tuple[Nominated | None, tuple[ClaimedPod, ...]]:
        """Keep room for a candidate that fits nowhere at this moment, if it is its turn to have some kept.

        To be asked each time it was tried in vain, before anything behind it is tried. Returns what is kept for it
        from here on (None: nothing), and the room of another that had to give way.
        """
        kept = self._kept.get(candidate.subject)
        if kept is not None:
            assignments = _improved(
                working, candidate, residents, self._claim(candidate.subject).on(working.snapshot.rows).assignments
            )
            if assignments is not None:
                return self._keep(working, candidate, kept.since_seconds, assignments), ()
            self.drop(candidate.subject)
        if not self._due(candidate, ranking.now):
            return None, ()
        may, behind = self._behind(candidate, ranking)
        assignments = self._search(working, candidate, residents, ranking.now) if may else None
        if assignments is None:
            return None, ()
        assignments = _improved(working, candidate, residents, assignments) or assignments
        return self._keep(working, candidate, ranking.now, assignments), self.drop(behind) if behind else ()

    def next_due(self) -> float | None:
        """Unix time at which the next reservation is out of time, None where none is kept."""
        return min(map(self._until, self._kept.values()), default=None)

    def _until(self, kept: _Reserved) -> float:
        return kept.since_seconds + min(kept.candidate.timeout_seconds, self._policy.longest_seconds)

    def _search(
        self, working: WorkingSnapshot, candidate: Candidate, residents: Residents, now: float
    ) -> tuple[Assignment, ...] | None:
        """Where it will fit. A vain search, which looks at every pod, is made once for all that are alike."""
        shape = _shape(candidate)
        if now < self._search_from or self._hopeless.get(shape, 0.0) > now:
            return None
        assignments = future_fit(working, candidate, residents)
        if assignments is None:
            self._hopeless[shape] = now + self._policy.reserve_after_seconds
            self._search_from = now + _SEARCH_EVERY_SECONDS
        return assignments

    def _keep(
        self, working: WorkingSnapshot, candidate: Candidate, since: float, assignments: tuple[Assignment, ...]
    ) -> Nominated:
        workload = candidate.workload
        pods = claimed(assignments, working.snapshot.names)
        self._kept[candidate.subject] = _Reserved(candidate, since)
        self._ledger.keep(
            Claim(_KIND, candidate.subject, workload.outer_priority, pods, candidate.governed_by, spares_online=True)
        )
        return Nominated(candidate.subject, workload.outer_priority, assignments, spares_online=True)

    def _claim(self, subject: WorkloadId) -> Claim:
        claim = self._ledger.claim(_KIND, subject)
        if claim is None:
            raise LookupError(f"no room is kept for {subject.text}")
        return claim

    def _due(self, candidate: Candidate, now: float) -> bool:
        waited = now - candidate.workload.eligible_seconds
        allowed = self._not_before.get(candidate.subject, 0.0) <= now
        return candidate.needed > 0 and waited >= self._policy.reserve_after_seconds and allowed

    def _behind(self, candidate: Candidate, ranking: Ranking) -> tuple[bool, WorkloadId | None]:
        """Whether room may be kept for the candidate, and the workload whose reservation gives way where one has to."""
        ordinary = (kept for kept in self._kept.values() if not kept.candidate.begun)
        same = [kept for kept in ordinary if kept.candidate.workload.queue == candidate.workload.queue]
        if len(same) < self._policy.most_reservations:
            return True, None
        if not same:
            return False, None
        last = max(same, key=lambda kept: ranking.within_queue(kept.candidate))
        goes_first = ranking.within_queue(candidate) < ranking.within_queue(last.candidate)
        return goes_first, last.candidate.subject if goes_first else None


def _shape(candidate: Candidate) -> _Shape:
    """What decides whether there is any hope for a workload."""
    counts = tuple(pods.count for pods in candidate.workload.pod_sets)
    return (candidate.classes, counts, candidate.needed, candidate.workload.topology, candidate.workload.priority)


def _improved(
    working: WorkingSnapshot, candidate: Candidate, residents: Residents, assignments: tuple[Assignment, ...]
) -> tuple[Assignment, ...] | None:
    """With those moved that find room elsewhere, as they are where that does not do; None if neither does."""
    moved = reassign(working, candidate, assignments)
    return next((each for each in (moved, assignments) if will_fit(working, candidate, residents, each)), None)
