"""When a workload that did not fit is tried again.

As kube-scheduler's queue (backend/queue): a failure doubles the back-off from its first value to its longest; a
parked workload also needs something that may have made room, or `flush_seconds` to pass.

Unlike there, news about what kept a workload out ends its back-off: otherwise whoever stands behind it takes the room
that became free for it, and a large gang with a long back-off waits for ever behind a stream of small pods. Attempts
stay bounded, as each needs its news; the back-off guards against failures that no news explains.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Annotated

import msgspec
from msgspec import Meta

from scheduler.core.queueing.news import Need, News


class BackoffPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds; kube-scheduler's podInitialBackoff, podMaxBackoff and podMaxInUnschedulablePodsDuration."""

    first_seconds: Annotated[
        float, Meta(gt=0, le=86_400, description="Rest after the first failed attempt; doubles with each.")
    ] = 1.0
    longest_seconds: Annotated[float, Meta(gt=0, le=86_400, description="Longest rest.")] = 10.0
    flush_seconds: Annotated[
        float, Meta(gt=0, le=86_400, description="Parked workloads are tried again after this, news or not.")
    ] = 300.0


class Parked(msgspec.Struct, frozen=True):
    """A workload after `attempts` failures; times are Unix seconds. `woken`: room may have come since.

    `need` is what kept it out, None where that is not for want of room (a binding failed, say).
    """

    attempts: int
    since_seconds: float
    not_before_seconds: float
    woken: bool = False
    need: Need | None = None


def delay_seconds(attempts: int, policy: BackoffPolicy) -> float:
    """How long to wait after so many failures, 1 or more."""
    return min(policy.first_seconds * 2.0 ** min(attempts - 1, 30), policy.longest_seconds)


def park(
    before: Parked | None, policy: BackoffPolicy, now: float, *, woken: bool = False, need: Need | None = None
) -> Parked:
    """After one more failure; `woken` where time alone is reason enough to try again, as after a failed binding."""
    attempts = before.attempts + 1 if before else 1
    return Parked(attempts, now, now + delay_seconds(attempts, policy), woken, need)


class Served(Enum):
    """Whether news is a reason to try again, after the back-off or at once."""

    NOT = auto()
    LATER = auto()
    AT_ONCE = auto()


def served_by(need: Need | None, news: News | None) -> Served:
    """The back-off holds, unless `news` is about the very thing that kept a workload out."""
    if news is None or need is None:
        return Served.LATER
    if need.ended_by(news):
        return Served.AT_ONCE
    return Served.LATER if need.served_by(news) else Served.NOT


def wake(parked: Parked, served: Served = Served.LATER) -> Parked:
    """Something may help: the back-off holds, or has passed."""
    not_before = parked.since_seconds if served is Served.AT_ONCE else parked.not_before_seconds
    if served is Served.NOT or (parked.woken and parked.not_before_seconds == not_before):
        return parked
    return Parked(parked.attempts, parked.since_seconds, not_before, True, parked.need)


def due_seconds(parked: Parked, policy: BackoffPolicy) -> float:
    """Unix time from which the workload may be tried again."""
    if parked.woken:
        return parked.not_before_seconds
    return max(parked.not_before_seconds, parked.since_seconds + policy.flush_seconds)
