"""Holds: why a gang cannot be tried yet, in words that say what to mend."""

from __future__ import annotations

from collections.abc import Sequence

from model.reason import Reason
from model.workload import GangSource, MatchPolicy, WorkloadId
from scheduler.core.gangs.minimum import GangPart, belongs, lacks_object, topology_of
from scheduler.core.gangs.roster import Roster
from scheduler.core.gangs.tasks import lacking

_SHOWN = 3
"""Of names that are wrong together, since each may be as long as a label."""


def why_held(subject: WorkloadId, part: GangPart, parts: Sequence[GangPart]) -> tuple[Reason, str] | None:
    """Why a gang keeps its whole workload from being tried, None where it does not."""
    if part.gang is None and lacks_object(part.members):
        detail = f"gang {part.key}: PodGroup {part.key} does not exist; create it, or correct the pods' label"
        return Reason.GANG_NOT_FOUND, detail
    if part.gang is None and not part.members.counted:
        return Reason.GANG_NOT_FOUND, f"gang {part.key} of group {subject.name} does not exist"
    problem = part.spec.problem or _discord(subject, part) or _mixed(part, parts)
    if problem:
        return Reason.GANG_INVALID, f"gang {part.key}: {problem}"
    if part.missing:
        return Reason.GANG_WAITING_FOR_MEMBERS, f"gang {part.key}: {_numbers(part)}{_left_out(part.members)}"
    if short := lacking(part):
        return Reason.GANG_WAITING_FOR_MEMBERS, f"gang {part.key}: {short}{_left_out(part.members)}"
    return None


def _discord(subject: WorkloadId, part: GangPart) -> str:
    """What is wrong where a gang lists another group than the one that lists it."""
    if belongs(subject, part):
        return ""
    own = WorkloadId.gang(part.key, *part.spec.groups).name
    return f"it is listed in group {subject.name} but lists {own} itself; give all of them one list"


def _mixed(part: GangPart, parts: Sequence[GangPart]) -> str:
    """What is wrong where members cannot be placed as one workload."""
    schedulers = sorted({pod.spec.scheduler_name for item in parts for pod in item.members.pending})
    if len(schedulers) > 1:
        return f"its pods name {len(schedulers)} schedulers ({', '.join(schedulers)}); give all of them one"
    if part.gang is not None and part.gang.source is GangSource.UPSTREAM and part.members.foreign:
        return "some of its pods name another scheduler; give all of them one"
    queues = sorted({pod.spec.queue for item in parts for pod in item.members.pending})
    if len(queues) > 1:
        return f"its pods name {len(queues)} queues ({', '.join(queues[:_SHOWN])}); give all of them one"
    topology = topology_of(parts)
    if part.spec.topology and part.spec.topology != topology:
        return "it asks for another topology than the gang before it in its group; give both the same"
    return ""


def _numbers(part: GangPart) -> str:
    minimum, members = part.spec.min_member, part.members
    if part.spec.match is MatchPolicy.ONLY_WAITING:
        return f"{len(members.pending)} of {minimum} members wait, and by match policy only-waiting no others count"
    return f"{part.counted + len(members.pending)} of {minimum} members exist"


def _left_out(members: Roster) -> str:
    """The pods that exist but do not count, in words."""
    groups = (
        (members.gated, "gated"),
        (members.unsupported, "with constraints not supported"),
        (members.foreign, "of another scheduler"),
        (members.deleting, "being deleted"),
        (members.failed, "failed"),
    )
    told = ", ".join(f"{len(pods)} {word}" for pods, word in groups if pods)
    return f" (not counted: {told})" if told else ""
