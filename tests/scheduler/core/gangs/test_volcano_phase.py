"""Phases of Volcano's PodGroups."""

from __future__ import annotations

from typing import Any

import pytest

from model.pod.pod import Pod
from model.pod.status import PodPhase, PodStatus
from model.workload import GangPhase
from scheduler.core.gangs.roster import Roster
from scheduler.core.gangs.volcano_phase import VolcanoPhase, VolcanoStatus, proves, volcano_status


def pods(number: int, phase: PodPhase = PodPhase.PENDING) -> tuple[Pod, ...]:
    return tuple(Pod("ns", f"p{i}", f"u{i}", status=PodStatus(phase=phase)) for i in range(number))


RUNNING = pods(2, PodPhase.RUNNING)
STEPS: dict[str, tuple[VolcanoPhase, Roster, VolcanoStatus]] = {
    "not admitted yet": (VolcanoPhase.UNSET, Roster(), VolcanoStatus(VolcanoPhase.PENDING)),
    "no pods yet": (VolcanoPhase.INQUEUE, Roster(), VolcanoStatus(VolcanoPhase.INQUEUE)),
    "once admitted it stays so": (VolcanoPhase.INQUEUE, Roster(pods(2)), VolcanoStatus(VolcanoPhase.INQUEUE)),
    "too few have a node": (VolcanoPhase.INQUEUE, Roster(pods(1), pods(1)), VolcanoStatus(VolcanoPhase.INQUEUE)),
    "the minimum has nodes": (VolcanoPhase.INQUEUE, Roster((), pods(2)), VolcanoStatus(VolcanoPhase.RUNNING)),
    "they run": (VolcanoPhase.RUNNING, Roster((), RUNNING), VolcanoStatus(VolcanoPhase.RUNNING, 2)),
    "one completed": (
        VolcanoPhase.RUNNING, Roster((), RUNNING[:1], pods(1)), VolcanoStatus(VolcanoPhase.RUNNING, 1, 1),
    ),
    "all completed": (VolcanoPhase.RUNNING, Roster((), (), pods(2)), VolcanoStatus(VolcanoPhase.COMPLETED, 0, 2)),
    "a part runs, the rest waits": (
        VolcanoPhase.RUNNING, Roster(pods(1), RUNNING[:1]), VolcanoStatus(VolcanoPhase.UNKNOWN, 1),
    ),
    "one failed": (
        VolcanoPhase.RUNNING, Roster((), RUNNING[:1], (), pods(1)), VolcanoStatus(VolcanoPhase.INQUEUE, 1, 0, 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STEPS)
def test_a_step(case: str) -> None:
    before, members, wanted = STEPS[case]
    assert volcano_status(before, 2, members) == wanted


PROOFS: dict[str, tuple[dict[str, Any], GangPhase]] = {
    "waiting": ({"phase": VolcanoPhase.INQUEUE, "running": 5}, GangPhase.UNSET),
    "the minimum has nodes": ({"phase": VolcanoPhase.RUNNING, "running": 1}, GangPhase.SCHEDULED),
    "the minimum ran": ({"phase": VolcanoPhase.RUNNING, "running": 1, "succeeded": 1}, GangPhase.RUNNING),
    "completed": ({"phase": VolcanoPhase.COMPLETED}, GangPhase.FINISHED),
}


@pytest.mark.parametrize("case", PROOFS)
def test_what_a_status_proves(case: str) -> None:
    fields, wanted = PROOFS[case]
    assert proves(VolcanoStatus(**fields), 2) is wanted
