"""The order of the queue: one comparator, exact arithmetic.

Criteria, first difference decides: past its deadline · weighted dominant share of its queue (used + nominated) ·
priority with the points for its age, higher first · bound in part, or its room is being freed · time eligible · uid. A
gang that is bound in part has the most points at once: until it is whole it holds room that nobody uses. With a single
queue the share is the same for all, which leaves priority, then first come first served. The share is DRF's (Ghodsi
et al., NSDI 2011).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate

OrderKey: TypeAlias = tuple[bool, Fraction, int, bool, float, str]


class AgeingPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Points of priority that waiting earns: for the order alone, never for preemption."""

    points_per_minute: Annotated[
        float,
        Meta(
            ge=0,
            le=1_000_000,
            description="Points of priority a workload gains in the order for each minute it waits. kube-scheduler has "
            "no ageing: there, a steady stream of slightly higher priority starves what is below for ever.",
        ),
    ] = 1.0
    most_points: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000_000,
            description="Most points; Koordinator's bands are 1000 wide and 2000 apart, so age alone changes no band.",
        ),
    ] = 100

    @property
    def most(self) -> int:
        """What waiting can earn at all."""
        return self.most_points if self.points_per_minute else 0

    def points(self, waited_seconds: float) -> int:
        """Whole points for so long a wait."""
        return min(self.most_points, int(self.points_per_minute * max(0.0, waited_seconds) / 60.0))


NO_AGEING = AgeingPolicy(points_per_minute=0.0)


class Share(msgspec.Struct, frozen=True):
    """A queue's dominant share, 0 to 1 of the cluster before division by its weight, and the resource that makes it."""

    value: Fraction = Fraction(0)
    resource: str = ""


class Ranking(msgspec.Struct, frozen=True):
    """What the order depends on besides the workloads; `nominated` are subjects whose room is being freed."""

    now: float
    ageing: AgeingPolicy = NO_AGEING
    nominated: Collection[WorkloadId] = frozenset()

    def within_queue(self, candidate: Candidate) -> tuple[bool, int, bool, float, str]:
        """The key without the share, which all workloads of a queue have in common; smaller goes first."""
        workload = candidate.workload
        points = self.ageing.most if candidate.begun else self.ageing.points(self.now - workload.eligible_seconds)
        late = workload.deadline_seconds is not None and workload.deadline_seconds <= self.now
        nominated = candidate.begun or candidate.subject in self.nominated
        return (not late, -workload.priority - points, not nominated, workload.eligible_seconds, workload.uid)

    def key(self, candidate: Candidate, share: Fraction) -> OrderKey:
        """Smaller goes first."""
        on_time, priority, others, eligible, uid = self.within_queue(candidate)
        return (on_time, share, priority, others, eligible, uid)


def dominant_share(used: Mapping[str, int], totals: Mapping[str, int], weight: int = 1) -> Share:
    """The largest share of any resource, divided by `weight`; a resource the cluster lacks does not count."""
    shares = (
        Share(Fraction(amount, totals[resource] * weight), resource)
        for resource, amount in sorted(used.items())
        if totals.get(resource, 0) > 0
    )
    return max(shares, key=lambda share: share.value, default=Share())


def in_order(
    candidates: Iterable[Candidate], share_of: Callable[[str], Fraction], ranking: Ranking | float
) -> Iterator[Candidate]:
    """Yield the head again and again; a queue's share is read again at each step, since placing a head raises it.

    A bare number for `ranking` is the time (Unix seconds), without ageing.
    """
    ranking = ranking if isinstance(ranking, Ranking) else Ranking(ranking)
    queues: dict[str, deque[Candidate]] = {}
    for candidate in sorted(candidates, key=ranking.within_queue):
        queues.setdefault(candidate.workload.queue, deque()).append(candidate)
    while len(queues) > 1:
        name = min(queues, key=lambda queue: ranking.key(queues[queue][0], share_of(queue)))
        yield queues[name].popleft()
        if not queues[name]:
            del queues[name]
    for rest in queues.values():
        yield from rest
