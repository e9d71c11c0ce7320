"""A PodGroup's status from its pods.

Source: Koordinator pkg/scheduler/plugins/coscheduling/controller/podgroup.go; its steps are followed to their end
here, so that one write suffices.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from model.pod.status import PodPhase
from model.workload import GangPhase, GangTimes
from scheduler.core.gangs.minimum import GangPart
from scheduler.core.gangs.roster import Roster


class GangStatus(msgspec.Struct, frozen=True):
    """status of a PodGroup; counts are pods.

    `occupied_by` are the owners of its pods as `namespace/name`, sorted and joined by commas; `start_seconds` is when
    placing it began (scheduleStartTime, Unix seconds), 0 before.
    """

    phase: GangPhase = GangPhase.UNSET
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    occupied_by: str = ""
    start_seconds: float = 0.0


def gang_status(before: GangPhase, min_member: int, members: Roster, bound: int) -> GangStatus:
    """The phase after phase `before`, and counts; `bound` is how many placed members the API server has confirmed."""
    running = sum(pod.status.phase is PodPhase.RUNNING for pod in members.placed)
    succeeded, failed = len(members.succeeded), len(members.failed)
    scheduled = bound + succeeded
    total = members.present + failed + len(members.gated) + len(members.unsupported)
    counts = GangStatus(before, scheduled, running, succeeded, failed)
    return msgspec.structs.replace(counts, phase=_phase(counts, min_member, total))


def carry_over(status: GangStatus, before: GangStatus, owners: Iterable[str], now: float) -> GangStatus:
    """What a status keeps of the one before: who occupies the group, and when placing it began.

    Koordinator names the owners once the group leaves Pending, and dates the first Scheduling only; a phase that was
    passed through within one step is dated too. Whole seconds, as the API keeps no finer ones.
    """
    begun = status.phase.begun
    occupied = ",".join(sorted(set(owners))) if status.phase is not GangPhase.PENDING else ""
    return msgspec.structs.replace(
        status,
        occupied_by=before.occupied_by or occupied,
        start_seconds=before.start_seconds or (float(int(now)) if begun else 0.0),
    )


def gang_times(before: GangTimes, part: GangPart, since: float, now: float) -> GangTimes:
    """The times of a gang as it stands; `since` is when it was found bound in part, 0 where it was not.

    That it was never whole is certain where nobody is bound yet: it is noted with the first binding, before a crash can
    leave a doubt.
    """
    members = part.members
    whole = before.whole_seconds or (float(int(now)) if part.ran else 0.0)
    bound = len(members.bound) + len(members.succeeded)
    if whole or not members.placed or bound >= part.spec.min_member:
        return GangTimes(0.0, whole)
    begins = now if not bound else 0.0
    return GangTimes(before.partial_seconds or float(int(since or begins)), 0.0)


def times_due(written: GangTimes, times: GangTimes, phase: GangPhase) -> GangTimes | None:
    """What to mark a PodGroup with before its phase becomes `phase`; None where both together will say the times.

    Scheduled says that the minimum is bound, Running and Finished that it ran. So times wait until the phase is about
    to say less, and a gang that is bound in one go is marked once, with its first binding.
    """
    said = phase.ran or (phase is GangPhase.SCHEDULED and not times.whole_seconds)
    return None if said or times == written else times


def _phase(counts: GangStatus, minimum: int, total: int) -> GangPhase:
    """The phase after `counts.phase` for `total` pods.

    PreScheduling is a step on the way from Pending, which Koordinator's controller leaves with its next look.
    """
    before, scheduled, running = counts.phase, counts.scheduled, counts.running
    succeeded, failed = counts.succeeded, counts.failed
    if minimum < 1 or total == 0 or (before in (GangPhase.UNSET, GangPhase.PENDING) and total < minimum):
        return GangPhase.PENDING
    if failed and failed + running + succeeded >= minimum:
        return GangPhase.FAILED
    if succeeded >= minimum:
        return GangPhase.FINISHED
    if running + succeeded >= minimum:
        return GangPhase.RUNNING
    if scheduled >= minimum:
        return GangPhase.SCHEDULED
    return GangPhase.SCHEDULING
