"""Gangs bound in part."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scheduler_builders import SCHEDULER, gang, in_group, pod

from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.reason import Reason
from model.workload import Gang, GangMode, GangPhase, WorkloadId
from scheduler.core.gangs.minimum import GangPart, part_of
from scheduler.core.gangs.release import Release, ReleasePolicy, Releases
from scheduler.core.gangs.roster import roster

GANG = WorkloadId.gang("default/train")
GROUP = WorkloadId.gang("default/a", "default/b")


def waiting(name: str, **more: Any) -> Pod:
    return pod(name, **({"gang": in_group(), "created_seconds": 1.0, "owned": True} | more))


def bound(name: str, **more: Any) -> Pod:
    return waiting(name, **({"node_name": "n1", "scheduled_seconds": 10.0} | more))


def rejected(name: str = "r", **more: Any) -> Pod:
    return bound(name, **({"phase": PodPhase.FAILED, "rejected": "OutOfcpu"} | more))


def part(pods: list[Pod], group: Gang | None = None, *, ran: bool = False) -> GangPart:
    group = group or gang(3, timeout_seconds=300.0)
    return part_of(group.key, roster(pods, (), (SCHEDULER,)), group, ran=ran)


def released(found: GangPart, after: float = 300.0, *, evict: bool = True) -> list[Release]:
    releases = Releases(ReleasePolicy(release_partial=evict))
    releases.update(GANG, [found], 100.0)
    return releases.take(100.0 + after)


HALF = [bound("a"), waiting("b"), waiting("c")]


def test_completed_or_released_after_its_timeout() -> None:
    """Until the timeout it may be completed; then its bound members go, and again only after another timeout.

    Since when is what its bound members say, whoever looked on.
    """
    releases = Releases(ReleasePolicy(partial_seconds=600.0))
    releases.update(GANG, [part(HALF)], 100.0)
    assert (releases.take(309.0), releases.next_due(), releases.since(GANG)) == ([], 310.0, 10.0)
    (release,) = releases.take(310.0)
    assert (release.reason, release.evict, release.stay) == (Reason.GANG_RELEASED, (HALF[0],), ())
    assert release.waiting == ("uid-b", "uid-c")
    assert release.detail == (
        "gang default/train: 1 of 3 members are bound and it was not completed within 300s; "
        "1 bound pod is evicted to try it again"
    )
    assert (releases.take(311.0), releases.next_due()) == ([], 610.0)
    releases.update(GANG, [part([bound("a"), bound("b"), bound("c")])], 450.0)
    assert (releases.take(9999.0), releases.next_due(), releases.since(GANG)) == ([], None, 0.0)


def noted(seconds: float) -> Gang:
    return msgspec.structs.replace(gang(3, timeout_seconds=300.0), partial_seconds=seconds)


DUE: dict[str, tuple[GangPart, float, float]] = {
    "the bound of the settings": (part(HALF), 20.0, 130.0),
    "its own timeout where that is shorter": (part(HALF, gang(3, timeout_seconds=60.0)), 20.0, 70.0),
    "as noted on its PodGroup": (part(HALF, noted(15.0)), 20.0, 135.0),
    "known for a quarter of it after a restart": (part(HALF), 1000.0, 1030.0),
    "no later than known where no time is told": (part([bound("a", scheduled_seconds=0.0), *HALF[1:]]), 20.0, 140.0),
}


@pytest.mark.parametrize("name", DUE)
def test_how_long_a_gang_may_be_bound_in_part(name: str) -> None:
    """Two minutes by default, counted across restarts, with time left for who has only just come."""
    found, now, due = DUE[name]
    releases = Releases(ReleasePolicy())
    releases.update(GANG, [found], now)
    assert releases.next_due() == due


def test_victims_that_were_told_are_waited_for() -> None:
    """Room for the gang is being made until then: giving its members up would be for nothing."""
    releases = Releases(ReleasePolicy(), lambda subject: 500.0 if subject == GANG else 0.0)
    releases.update(GANG, [part(HALF)], 100.0)
    assert (releases.next_due(), releases.take(499.0), len(releases.take(500.0))) == (500.0, [], 1)


def test_a_note_tells_a_gang_that_lost_members_before_it_was_whole() -> None:
    """Without one, fewer members than its minimum look as if it had been whole once; with one it is given back."""
    for lost in ("a member it began with is gone", "a member was replaced"):
        pods = [*LEFT[lost].members.bound, *LEFT[lost].members.pending]
        assert released(part(pods, noted(10.0)), after=1e9) != []


def test_a_note_tells_an_elastic_gang_that_ran_once() -> None:
    """It has as many members as at its beginning, though most are not bound: without the note it would be given back."""
    ran = msgspec.structs.replace(gang(3, timeout_seconds=300.0), whole_seconds=5.0)
    assert released(part(HALF), after=1e9) != [] and released(part(HALF, ran), after=1e9) == []


def test_bare_pods_stay_and_are_named() -> None:
    """Nobody would replace a pod without a controller: it is left to its owner."""
    (release,) = released(part([bound("a", owned=False), bound("b"), waiting("c")]))
    assert ([item.name for item in release.evict], [item.name for item in release.stay]) == (["b"], ["a"])
    assert release.detail.endswith("; default/a stays bound, delete it to free room")


def test_several_bare_pods_are_named_in_the_plural() -> None:
    """Each by its name."""
    (release,) = released(part([bound("a", owned=False), bound("b", owned=False), waiting("c")]))
    assert release.detail.endswith("; default/a, default/b stay bound, delete them to free room")


def test_switched_off_everything_stays() -> None:
    """The gang is still told; nothing is evicted."""
    (release,) = released(part(HALF), evict=False)
    assert (release.evict, release.stay) == ((), (HALF[0],))


LEFT: dict[str, GangPart] = {
    "it ran": part(HALF, ran=True),
    "its status says it ran": part(HALF, Gang("default", "train", gang(3).spec, phase=GangPhase.RUNNING)),
    "it is not strict": part(HALF, gang(3, mode=GangMode.NON_STRICT)),
    "a member it began with is gone": part([bound("a"), waiting("b")]),
    "a member was replaced": part([bound("a"), waiting("b"), waiting("c", created_seconds=50.0)]),
    "nothing is bound": part([waiting("a"), waiting("b"), waiting("c")]),
    "its definition is unusable": part(HALF, gang(0, problem="mend me")),
}


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name: str) -> None:
    """A gang that was whole once has work to lose, also where that can only be inferred."""
    assert released(LEFT[name], after=1e9) == []


def test_a_rejection_is_a_failure_of_the_gang_at_once() -> None:
    """The kubelet refused one of three: the other two go now. The failed pod stays in the API and counts once."""
    pods = [bound("a"), bound("b"), rejected()]
    releases = Releases(ReleasePolicy())
    releases.update(GANG, [part(pods)], 100.0)
    (release,) = releases.take(100.0)
    assert (release.reason, {item.name for item in release.evict}) == (Reason.MEMBER_REJECTED, {"a", "b"})
    assert "2 of 3 members are bound and the kubelet rejected default/r: OutOfcpu" in release.detail
    again = [bound(name, created_seconds=101.0, scheduled_seconds=20.0) for name in "cd"]
    fresh = [*again, waiting("e", created_seconds=19.0), rejected()]
    releases.update(GANG, [part([*again, bound("e"), rejected()])], 110.0)
    releases.update(GANG, [part(fresh)], 120.0)
    assert releases.take(121.0) == []


def test_an_old_rejection_concerns_no_later_round() -> None:
    """After a restart a pod that was rejected an hour before the present members were bound says nothing of them."""
    late = [bound(name, scheduled_seconds=4000.0) for name in "ab"]
    assert released(part([*late, waiting("c"), rejected()]), after=0.0) == []


def test_a_group_is_released_whole() -> None:
    """One gang bound, the other not: the group is not what was asked for, so all that is bound goes."""
    groups = ("default/a", "default/b")
    whole = [bound(f"a{i}", gang=in_group("a")) for i in range(2)]
    parts = [
        part(whole, gang(2, "a", groups=groups, timeout_seconds=300.0)),
        part([waiting(f"b{i}", gang=in_group("b")) for i in range(2)], gang(2, "b", groups=groups)),
    ]
    releases = Releases(ReleasePolicy())
    releases.update(GROUP, parts, 100.0)
    assert releases.next_due() == 130.0
    (release,) = releases.take(130.0)
    assert release.evict == tuple(whole)
    releases.update(GROUP, [], 131.0)
    assert releases.next_due() is None
