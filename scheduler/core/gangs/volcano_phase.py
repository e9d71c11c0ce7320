"""Status of a PodGroup of Volcano, from its pods, as Volcano's scheduler reports it.

Source: volcano pkg/scheduler/framework (jobStatus).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from model.pod.status import PodPhase
from model.workload import GangPhase
from scheduler.core.gangs.roster import Roster


class VolcanoPhase(StrEnum):
    """status.phase: INQUEUE says that controllers may make pods, RUNNING that the minimum has nodes, UNKNOWN that
    a part runs and the rest finds no place.
    """

    UNSET = ""
    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


class VolcanoStatus(msgspec.Struct, frozen=True):
    """status of a PodGroup; counts are pods."""

    phase: VolcanoPhase = VolcanoPhase.UNSET
    running: int = 0
    succeeded: int = 0
    failed: int = 0


def proves(status: VolcanoStatus, minimum: int) -> GangPhase:
    """What a status says for certain, in the phases of other PodGroups."""
    if status.phase is VolcanoPhase.COMPLETED:
        return GangPhase.FINISHED
    if status.phase is not VolcanoPhase.RUNNING:
        return GangPhase.UNSET
    return GangPhase.RUNNING if status.running + status.succeeded >= minimum else GangPhase.SCHEDULED


def volcano_status(before: VolcanoPhase, minimum: int, members: Roster) -> VolcanoStatus:
    """The phase after phase `before`, and counts; whether it is admitted, which makes it INQUEUE, is decided elsewhere.

    Once admitted it stays so while it waits. Members that completed count as those that have a node.
    """
    running = sum(pod.status.phase is PodPhase.RUNNING for pod in members.placed)
    phase = _phase(before, minimum, members, running)
    return VolcanoStatus(phase, running, len(members.succeeded), len(members.failed))


def _phase(before: VolcanoPhase, minimum: int, members: Roster, running: int) -> VolcanoPhase:
    if members.satisfied >= minimum:
        ended = not members.placed and not members.pending
        return VolcanoPhase.COMPLETED if ended else VolcanoPhase.RUNNING
    if running and members.pending:
        return VolcanoPhase.UNKNOWN
    waits = before in (VolcanoPhase.INQUEUE, VolcanoPhase.UNKNOWN, VolcanoPhase.RUNNING)
    return VolcanoPhase.INQUEUE if waits else VolcanoPhase.PENDING
