"""PodGroup phases."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import SCHEDULER, gang, in_group, members, pod

from model.pod.status import PodPhase
from model.workload import GangPhase, GangTimes
from scheduler.core.gangs.minimum import part_of
from scheduler.core.gangs.phase import GangStatus, carry_over, gang_status, gang_times, times_due
from scheduler.core.gangs.roster import roster


def state(name: str, phase: PodPhase) -> Any:
    return pod(name, gang=in_group(), node_name="n1", phase=phase)


P, R, S, F = PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED
CASES: dict[str, tuple[GangPhase, list[Any], GangStatus]] = {
    "no pods": (GangPhase.RUNNING, [], GangStatus(GangPhase.PENDING)),
    "too few pods": (GangPhase.UNSET, members(1), GangStatus(GangPhase.PENDING)),
    "enough pods": (GangPhase.PENDING, members(2), GangStatus(GangPhase.SCHEDULING)),
    "some bound": (GangPhase.PRE_SCHEDULING, [state("a", P), *members(1)], GangStatus(GangPhase.SCHEDULING, 1)),
    "all bound": (GangPhase.SCHEDULING, [state("a", P), state("b", P)], GangStatus(GangPhase.SCHEDULED, 2)),
    "running": (GangPhase.SCHEDULED, [state("a", R), state("b", R)], GangStatus(GangPhase.RUNNING, 2, 2)),
    "a member lost": (GangPhase.RUNNING, [state("a", R), *members(1)], GangStatus(GangPhase.SCHEDULING, 1, 1)),
    "finished": (GangPhase.RUNNING, [state("a", S), state("b", S)], GangStatus(GangPhase.FINISHED, 2, 0, 2)),
    "failed": (GangPhase.RUNNING, [state("a", R), state("b", F)], GangStatus(GangPhase.FAILED, 1, 1, 0, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_phases(name: str) -> None:
    """Koordinator's controller steps, followed to their end, for a minimum of two."""
    before, pods, expected = CASES[name]
    found = roster(pods, (), (SCHEDULER,))
    assert gang_status(before, 2, found, len(found.placed)) == expected


CARRIED: dict[str, tuple[GangStatus, GangStatus, GangStatus]] = {
    "no owners and no date while pending": (GangStatus(GangPhase.PENDING), GangStatus(), GangStatus(GangPhase.PENDING)),
    "owners once its pods are there": (
        GangStatus(GangPhase.PRE_SCHEDULING),
        GangStatus(GangPhase.PENDING),
        GangStatus(GangPhase.PRE_SCHEDULING, occupied_by="default/a,default/b"),
    ),
    "dated when placing begins": (
        GangStatus(GangPhase.SCHEDULING),
        GangStatus(GangPhase.PRE_SCHEDULING, occupied_by="default/old"),
        GangStatus(GangPhase.SCHEDULING, occupied_by="default/old", start_seconds=100.0),
    ),
    "dated though Scheduling was passed through": (
        GangStatus(GangPhase.RUNNING, 2, 2),
        GangStatus(GangPhase.PRE_SCHEDULING),
        GangStatus(GangPhase.RUNNING, 2, 2, occupied_by="default/a,default/b", start_seconds=100.0),
    ),
    "dated once": (
        GangStatus(GangPhase.SCHEDULING),
        GangStatus(GangPhase.RUNNING, occupied_by="default/a", start_seconds=50.0),
        GangStatus(GangPhase.SCHEDULING, occupied_by="default/a", start_seconds=50.0),
    ),
}


@pytest.mark.parametrize("name", CARRIED)
def test_what_a_status_keeps(name: str) -> None:
    """Owners, sorted and each once, and when placing began: set once, in whole seconds."""
    status, before, expected = CARRIED[name]
    assert carry_over(status, before, ["default/b", "default/a", "default/b"], 100.7) == expected


NOTED: dict[str, tuple[GangTimes, list[Any], float, GangTimes]] = {
    "nobody has a node": (GangTimes(50.0), members(3), 0.0, GangTimes()),
    "bindings begin": (GangTimes(), members(3), 0.0, GangTimes(100.0)),
    "found bound in part": (GangTimes(), [state("a", P), *members(2)], 60.0, GangTimes(60.0)),
    "bound in part, and perhaps whole before": (GangTimes(), [state("a", P), *members(2)], 0.0, GangTimes()),
    "noted once": (GangTimes(50.0), [state("a", P), *members(2)], 60.0, GangTimes(50.0)),
    "the minimum is bound": (GangTimes(50.0), [state("a", P), state("b", P)], 0.0, GangTimes()),
    "the minimum runs": (GangTimes(50.0), [state("a", R), state("b", R)], 0.0, GangTimes(0.0, 100.0)),
    "it ran, and lost a member": (GangTimes(0.0, 50.0), [state("a", R), *members(1)], 60.0, GangTimes(0.0, 50.0)),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_is_noted_for_a_restart(name: str) -> None:
    """Bound in part from the first binding on, which may be on its way only, until the minimum is bound."""
    before, pods, since, expected = NOTED[name]
    assumed = {item.uid for item in pods[:2]} if name == "bindings begin" else set()
    part = part_of("default/train", roster(pods, assumed, (SCHEDULER,)), gang(2))
    assert gang_times(before, part, since, 100.7) == expected


PARTIAL, WHOLE = GangTimes(50.0), GangTimes(0.0, 60.0)
DUE: dict[str, tuple[GangTimes, GangTimes, GangPhase, GangTimes | None]] = {
    "bindings begin": (GangTimes(), PARTIAL, GangPhase.SCHEDULING, PARTIAL),
    "it stands": (PARTIAL, PARTIAL, GangPhase.SCHEDULING, None),
    "the minimum is bound, as the phase says": (PARTIAL, GangTimes(), GangPhase.SCHEDULED, None),
    "it runs, as the phase says": (PARTIAL, WHOLE, GangPhase.RUNNING, None),
    "it lost a member before it ran": (PARTIAL, GangTimes(), GangPhase.SCHEDULING, GangTimes()),
    "it lost one that ran": (PARTIAL, WHOLE, GangPhase.SCHEDULING, WHOLE),
    "one that ran is bound again, which a kubelet may undo": (PARTIAL, WHOLE, GangPhase.SCHEDULED, WHOLE),
    "its pods are gone": (PARTIAL, WHOLE, GangPhase.PENDING, WHOLE),
    "it is whole once and for all": (WHOLE, WHOLE, GangPhase.SCHEDULING, None),
    "nobody was bound after all": (PARTIAL, GangTimes(), GangPhase.SCHEDULING, GangTimes()),
}


@pytest.mark.parametrize("name", DUE)
def test_times_are_written_when_the_phase_does_not_say_it(name: str) -> None:
    """A gang that is bound in one go and runs is marked once."""
    written, times, phase, expected = DUE[name]
    assert times_due(written, times, phase) == expected
