"""What a gang's minimum asks, and what it remembers."""

from __future__ import annotations

import msgspec
import pytest
from scheduler_builders import SCHEDULER, gang, in_group, members, pod

from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.workload import Gang, GangPhase, MatchPolicy, WorkloadId
from scheduler.core.gangs.minimum import GangPart, belongs, original, part_of
from scheduler.core.gangs.roster import roster


def placed(name: str, phase: PodPhase = PodPhase.PENDING, rejected: str = "") -> Pod:
    return pod(name, gang=in_group(), node_name="n1", phase=phase, scheduled_seconds=10.0, rejected=rejected)


def part(
    pods: list[Pod],
    phase: GangPhase = GangPhase.UNSET,
    match: MatchPolicy = MatchPolicy.ONCE_SATISFIED,
    *,
    ran: bool = False,
    live: bool = False,
) -> GangPart:
    group: Gang = msgspec.structs.replace(gang(2, match=match, live=live), phase=phase)
    return part_of(group.key, roster(pods, (), (SCHEDULER,)), group, ran=ran)


RUNS, DONE, REFUSED = PodPhase.RUNNING, PodPhase.SUCCEEDED, placed("r", PodPhase.FAILED, "OutOfcpu")
CASES: dict[str, tuple[GangPart, bool, bool]] = {
    "nothing bound": (part(members(2)), False, False),
    "one of two runs": (part([placed("a", RUNS), *members(1)]), False, False),
    "bound is met, but no proof that it ran": (part([placed("a"), placed("b")]), True, False),
    "running": (part([placed("a", RUNS), placed("b", RUNS)]), True, True),
    "completed ones count": (part([placed("a", RUNS), placed("b", DONE)]), True, True),
    "the status says Running": (part([placed("a"), *members(1)], GangPhase.RUNNING), True, True),
    "the status says Scheduled": (part([placed("a"), *members(1)], GangPhase.SCHEDULED), True, False),
    "the kubelet undid Scheduled": (part([placed("a"), REFUSED], GangPhase.SCHEDULED), False, False),
    "a failed member says nothing": (part([placed("a"), *members(1)], GangPhase.FAILED), False, False),
    "of those that are left completed ones do not count": (
        part([placed("a", RUNS), placed("b", DONE)], live=True),
        False,
        False,
    ),
    "those that are left run": (
        part([placed("a", RUNS), placed("b", RUNS), placed("c", DONE)], live=True),
        True,
        True,
    ),
    "it is remembered": (part(members(1), ran=True), True, True),
}


@pytest.mark.parametrize("name", CASES)
def test_met_and_ran(name: str) -> None:
    """Whether the minimum was ever met, and whether that is certain enough to be remembered."""
    found, met, ran = CASES[name]
    assert (found.met, found.ran) == (met, ran)


NEEDED: dict[str, tuple[GangPart, int, bool]] = {
    "all wait": (part(members(2)), 2, False),
    "too few exist": (part(members(1)), 2, True),
    "one is placed": (part([placed("a"), *members(1)]), 1, False),
    "met: any number helps": (part([*members(1)], ran=True), 0, False),
    "waiting and running forgets nothing": (
        part(members(1), GangPhase.UNSET, MatchPolicy.WAITING_AND_RUNNING, ran=True),
        2,
        True,
    ),
    "of those that are left": (
        part(
            [placed("a"), placed("b", DONE), *members(1)], GangPhase.UNSET, MatchPolicy.WAITING_AND_RUNNING, live=True
        ),
        1,
        False,
    ),
    "only waiting": (part([placed("a"), *members(2)], GangPhase.UNSET, MatchPolicy.ONLY_WAITING), 2, False),
    "only waiting, too few": (part([placed("a"), *members(1)], GangPhase.UNSET, MatchPolicy.ONLY_WAITING), 2, True),
    "only waiting, none waits": (part([placed("a"), placed("b")], GangPhase.UNSET, MatchPolicy.ONLY_WAITING), 0, False),
}


@pytest.mark.parametrize("name", NEEDED)
def test_needed(name: str) -> None:
    """How many members must be placed at once, for a minimum of two, and whether too few are there."""
    found, needed, missing = NEEDED[name]
    assert (found.needed, found.missing) == (needed, missing)


def test_original_members() -> None:
    """Those that were there before the first was bound; all of them where no time of binding is known."""
    early, late = pod("e", gang=in_group(), created_seconds=9.0), pod("l", gang=in_group(), created_seconds=11.0)
    first = placed("a")
    assert original(roster([first, early, late], (), (SCHEDULER,))) == (first, early)
    assert original(roster([early, late], (), (SCHEDULER,))) == (early, late)


def test_a_gang_belongs_where_it_says() -> None:
    """To the group it lists, and to itself alone otherwise."""
    grouped = part_of("n/a", roster([], (), ()), gang(1, groups=("n/a", "n/b")))
    assert belongs(WorkloadId.gang("n/a", "n/b"), grouped)
    assert not belongs(WorkloadId.gang("n/a"), grouped)
    assert belongs(WorkloadId.gang("default/train"), part(members(2)))
