"""PodGroup phases."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import SCHEDULER, gang, in_group, members, pod

from model.pod.status import PodPhase
from model.workload import Notes
from scheduler.core.gangs.minimum import part_of
from scheduler.core.gangs.phase import GangStatus, carry_over, gang_status, marks_due, noted
from scheduler.core.gangs.roster import roster


def state(name: str, phase: PodPhase) -> Any:
    return pod(name, gang=in_group(), node_name="n1", phase=phase)


P, R, S, F = PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED
CASES: dict[str, tuple[str, list[Any], GangStatus]] = {
    "no pods": ("Running", [], GangStatus("Pending")),
    "too few pods": ("", members(1), GangStatus("Pending")),
    "enough pods": ("Pending", members(2), GangStatus("Scheduling")),
    "some bound": ("PreScheduling", [state("a", P), *members(1)], GangStatus("Scheduling", 1)),
    "all bound": ("Scheduling", [state("a", P), state("b", P)], GangStatus("Scheduled", 2)),
    "running": ("Scheduled", [state("a", R), state("b", R)], GangStatus("Running", 2, 2)),
    "a member lost": ("Running", [state("a", R), *members(1)], GangStatus("Scheduling", 1, 1)),
    "finished": ("Running", [state("a", S), state("b", S)], GangStatus("Finished", 2, 0, 2)),
    "failed": ("Running", [state("a", R), state("b", F)], GangStatus("Failed", 1, 1, 0, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_phases(name: str) -> None:
    """Koordinator's controller steps, followed to their end, for a minimum of two."""
    before, pods, expected = CASES[name]
    found = roster(pods, (), (SCHEDULER,))
    assert gang_status(before, 2, found, len(found.placed)) == expected


CARRIED: dict[str, tuple[GangStatus, GangStatus, GangStatus]] = {
    "no owners and no date while pending": (GangStatus("Pending"), GangStatus(), GangStatus("Pending")),
    "owners once its pods are there": (
        GangStatus("PreScheduling"),
        GangStatus("Pending"),
        GangStatus("PreScheduling", occupied_by="default/a,default/b"),
    ),
    "dated when placing begins": (
        GangStatus("Scheduling"),
        GangStatus("PreScheduling", occupied_by="default/old"),
        GangStatus("Scheduling", occupied_by="default/old", start_seconds=100.0),
    ),
    "dated though Scheduling was passed through": (
        GangStatus("Running", 2, 2),
        GangStatus("PreScheduling"),
        GangStatus("Running", 2, 2, occupied_by="default/a,default/b", start_seconds=100.0),
    ),
    "dated once": (
        GangStatus("Scheduling"),
        GangStatus("Running", occupied_by="default/a", start_seconds=50.0),
        GangStatus("Scheduling", occupied_by="default/a", start_seconds=50.0),
    ),
}


@pytest.mark.parametrize("name", CARRIED)
def test_what_a_status_keeps(name: str) -> None:
    """Owners, sorted and each once, and when placing began: set once, in whole seconds."""
    status, before, expected = CARRIED[name]
    assert carry_over(status, before, ["default/b", "default/a", "default/b"], 100.7) == expected


NOTED: dict[str, tuple[Notes, list[Any], float, Notes]] = {
    "nobody has a node": (Notes(50.0), members(3), 0.0, Notes()),
    "bindings begin": (Notes(), members(3), 0.0, Notes(100.0)),
    "found bound in part": (Notes(), [state("a", P), *members(2)], 60.0, Notes(60.0)),
    "bound in part, and perhaps whole before": (Notes(), [state("a", P), *members(2)], 0.0, Notes()),
    "noted once": (Notes(50.0), [state("a", P), *members(2)], 60.0, Notes(50.0)),
    "the minimum is bound": (Notes(50.0), [state("a", P), state("b", P)], 0.0, Notes()),
    "the minimum runs": (Notes(50.0), [state("a", R), state("b", R)], 0.0, Notes(0.0, 100.0)),
    "it ran, and lost a member": (Notes(0.0, 50.0), [state("a", R), *members(1)], 60.0, Notes(0.0, 50.0)),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_is_noted_for_a_restart(name: str) -> None:
    """Bound in part from the first binding on, which may be on its way only, until the minimum is bound."""
    before, pods, since, expected = NOTED[name]
    assumed = {item.uid for item in pods[:2]} if name == "bindings begin" else set()
    part = part_of("default/train", roster(pods, assumed, (SCHEDULER,)), gang(2))
    assert noted(before, part, since, 100.7) == expected


PARTIAL, WHOLE = Notes(50.0), Notes(0.0, 60.0)
DUE: dict[str, tuple[Notes, Notes, str, Notes | None]] = {
    "bindings begin": (Notes(), PARTIAL, "Scheduling", PARTIAL),
    "it stands": (PARTIAL, PARTIAL, "Scheduling", None),
    "the minimum is bound, as the phase says": (PARTIAL, Notes(), "Scheduled", None),
    "it runs, as the phase says": (PARTIAL, WHOLE, "Running", None),
    "it lost a member before it ran": (PARTIAL, Notes(), "Scheduling", Notes()),
    "it lost one that ran": (PARTIAL, WHOLE, "Scheduling", WHOLE),
    "one that ran is bound again, which a kubelet may undo": (PARTIAL, WHOLE, "Scheduled", WHOLE),
    "its pods are gone": (PARTIAL, WHOLE, "Pending", WHOLE),
    "it is whole once and for all": (WHOLE, WHOLE, "Scheduling", None),
    "nobody was bound after all": (PARTIAL, Notes(), "Scheduling", Notes()),
}


@pytest.mark.parametrize("name", DUE)
def test_marks_are_written_when_the_phase_does_not_say_it(name: str) -> None:
    """A gang that is bound in one go and runs is marked once."""
    marks, notes, phase, expected = DUE[name]
    assert marks_due(marks, notes, phase) == expected
