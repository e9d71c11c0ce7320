"""Members by group onto rows: each against what those before left, up to the limits of their gangs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from filter_builders import HOST, ZONE, apart, term
from scheduler_builders import node, pod, snapshot

from model.workload import WorkloadId
from scheduler.core.placement.fill import FillOptions, FillResult, Group, PlacementTrial, best_row, fill
from scheduler.core.placement.pack import pack
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.scores.policy import ScorePolicy
from scheduler.core.scores.relative_scores import ScoredPod
from scheduler.core.snapshot.assignment import Requester
from scheduler.core.snapshot.podclass import class_of, pod_traits_of
from scheduler.core.snapshot.snapshot import Mask

ASKS = Requester(WorkloadId.gang("default/train"), 0)


def group(name: str, number: int, *, gang: str = "", **more: Any) -> Group:
    pods = [pod(f"{name}{i}", **more) for i in range(number)]
    return Group(class_of(pods[0]), tuple(p.uid for p in pods), tuple(pod_traits_of(p) for p in pods), gang)


def how(within: Mask | None = None) -> FillOptions:
    return FillOptions(ASKS, ScorePolicy(), pack, within)


def working(*sizes: int) -> WorkingSnapshot:
    return WorkingSnapshot(
        snapshot(*(node(f"n{i}", batch_cpu=size, labels={HOST: f"n{i}"}) for i, size in enumerate(sizes)))
    )


def filled(on: WorkingSnapshot, limits: dict[str, int], *groups: Group, within: Mask | None = None) -> FillResult:
    with PlacementTrial(on) as trial:
        return fill(trial, groups, limits, how(within))


def told(filling: FillResult) -> str:
    return " ".join(f"{a.uid.removeprefix('uid-')}@{a.row}" for a in filling.assignments)


LARGE, SMALL = group("l", 2, batch_cpu=1000, gang="a"), group("s", 3, batch_cpu=500, gang="b")
CASES: dict[str, tuple[tuple[int, ...], dict[str, int], str, str, str]] = {
    "all of both": ((2000, 1500), {"a": 2, "b": 3}, "l0@0 l1@0 s0@1 s1@1 s2@1", "", ""),
    "what is left for the second group": ((2000, 500), {"a": 2, "b": 3}, "l0@0 l1@0 s0@1", "s1 s2", "s1 s2"),
    "the first group runs short, the second goes on": ((1500,), {"a": 2, "b": 3}, "l0@0 s0@0", "l1 s1 s2", "l1"),
    "no more than the limits": ((4000,), {"a": 1, "b": 1}, "l0@0 s0@0", "l1 s1 s2", ""),
    "a limit of none": ((4000,), {"a": 0, "b": 3}, "s0@0 s1@0 s2@0", "l0 l1", ""),
}


@pytest.mark.parametrize(("sizes", "limits", "placed", "rest", "short"), CASES.values(), ids=CASES)
def test_fill(sizes: tuple[int, ...], limits: dict[str, int], placed: str, rest: str, short: str) -> None:
    """Who sits where, who is left, and the first group of which fewer than wanted have a place."""
    found = filled(working(*sizes), limits, LARGE, SMALL)
    uids = [uid.removeprefix("uid-") for each in found.rest for uid in each.uids]
    assert (told(found), " ".join(uids)) == (placed, rest)
    shorts = found.short.uids if found.short else ()
    assert " ".join(uid.removeprefix("uid-") for uid in shorts) == short


def test_gangs_of_one_limit_share_it() -> None:
    """Two groups of one gang get no more than its number together."""
    two = filled(working(9000), {"a": 3}, group("x", 2, gang="a"), group("y", 2, batch_cpu=400, gang="a"))
    assert told(two) == "x0@0 x1@0 y0@0"


def test_only_within_the_rows() -> None:
    """Nobody is put on a row that is out."""
    found = filled(working(1000, 1000), {"": 4}, group("x", 4), within=np.array([False, True]))
    assert told(found) == "x0@1 x1@1"


def test_members_apart_go_one_by_one() -> None:
    """Each where the one before is not; the third has no place."""
    own = {"labels": {"app": "a"}, "affinity": apart(term(ZONE, app="a"))}
    zones = WorkingSnapshot(snapshot(*(node(f"n{i}", labels={ZONE: zone}) for i, zone in enumerate("xyy"))))
    found = filled(zones, {"": 3}, group("x", 3, batch_cpu=100, **own))
    assert sorted(a.row for a in found.assignments) in ([0, 1], [0, 2])
    assert found.short is not None and found.short.uids == ("uid-x2",)
    inside = np.array([False, True, True])
    assert len(filled(zones, {"": 3}, group("x", 3, batch_cpu=100, **own), within=inside).assignments) == 1


def test_a_trial_leaves_nothing() -> None:
    """Inside it what was tried counts; after it the working snapshot is as before, also where it was cut short."""
    on, first = working(1000), group("x", 2)
    with PlacementTrial(on) as trial:
        assert len(fill(trial, [first], {"": 2}, how()).assignments) == 2
        assert trial.working.outlook(first.pod_class, first.member_traits[0], ASKS).room.tolist() == [0]
    assert on.outlook(first.pod_class, first.member_traits[0], ASKS).room.tolist() == [2]
    with pytest.raises(KeyError), PlacementTrial(on) as trial:
        fill(trial, [first, group("y", 1, gang="unknown")], {"": 2}, how())
    assert on.outlook(first.pod_class, first.member_traits[0], ASKS).room.tolist() == [2]


def test_the_best_row_of_one_pod() -> None:
    """−1 where there is none."""
    on, one = working(0, 700, 900), group("x", 1)
    asker = ScoredPod(one.pod_class, one.member_traits[0], ScorePolicy())
    assert best_row(on, asker, how()) == 2
    assert best_row(on, asker, how(np.array([True, True, False]))) == 1
    assert best_row(on, asker, how(np.array([True, False, False]))) == -1


def test_a_group_after_its_first_members() -> None:
    """The rest, of the same class and gang."""
    rest = SMALL.after(2)
    assert (rest.uids, len(rest.member_traits), rest.gang, rest.pod_class) == (("uid-s2",), 1, "b", SMALL.pod_class)
    assert [a.uid for a in SMALL.assignments(np.array([4, 4]))] == ["uid-s0", "uid-s1"]
