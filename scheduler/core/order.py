"""The order of the queue: one comparator, exact arithmetic.

Criteria, first difference decides: past its deadline · weighted dominant share of its queue (used + nominated) ·
priority, higher first · time eligible · uid. With a single queue the share is the same for all, which leaves
priority, then first come first served. The share is DRF's (Ghodsi et al., NSDI 2011).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

import msgspec

from model.workload import Workload
from scheduler.core.gang import Candidate

OrderKey: TypeAlias = tuple[bool, Fraction, int, float, str]


class Share(msgspec.Struct, frozen=True):
    """A queue's dominant share, 0 to 1 of the cluster before division by its weight, and the resource that makes it."""

    value: Fraction = Fraction(0)
    resource: str = ""


def dominant_share(used: Mapping[str, int], totals: Mapping[str, int], weight: int = 1) -> Share:
    """The largest share of any resource, divided by `weight`; a resource the cluster lacks does not count."""
    shares = (
        Share(Fraction(amount, totals[resource] * weight), resource)
        for resource, amount in sorted(used.items())
        if totals.get(resource, 0) > 0
    )
    return max(shares, key=lambda share: share.value, default=Share())


def order_key(workload: Workload, share: Fraction, now: float) -> OrderKey:
    """Smaller goes first; `now` and the workload's times are Unix seconds."""
    on_time, priority, eligible, uid = _within_queue(workload, now)
    return (on_time, share, priority, eligible, uid)


def in_order(candidates: Iterable[Candidate], share_of: Callable[[str], Fraction], now: float) -> Iterator[Candidate]:
    """Yield the head again and again; a queue's share is read anew at each step, since placing a head raises it."""
    queues: dict[str, deque[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda item: _within_queue(item.workload, now)):
        queues.setdefault(candidate.workload.queue, deque()).append(candidate)
    while len(queues) > 1:
        name = min(queues, key=lambda queue: order_key(queues[queue][0].workload, share_of(queue), now))
        yield queues[name].popleft()
        if not queues[name]:
            del queues[name]
    for rest in queues.values():
        yield from rest


def _within_queue(workload: Workload, now: float) -> tuple[bool, int, float, str]:
    """The key without the share, which all workloads of a queue have in common."""
    late = workload.deadline_seconds is not None and workload.deadline_seconds <= now
    return (not late, -workload.priority, workload.eligible_seconds, workload.uid)
