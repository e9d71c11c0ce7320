"""What is ready when."""

from __future__ import annotations

from scheduler_builders import candidate, gang, in_group, members, pod

from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Assembly, Hold
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.backoff import BackoffPolicy
from scheduler.core.queueing.news import Need, NewsKind, freed

LONE = WorkloadId.pod("default/p1")


def backlog() -> Backlog:
    filled = Backlog(BackoffPolicy(), hold_grace_seconds=1.0)
    filled.update(LONE, Assembly(candidate([pod()])), 100.0)
    return filled


def ready(waiting: Backlog, now: float) -> list[str]:
    return [item.subject for item in waiting.ready(now)]


def test_parked_until_woken_and_backed_off() -> None:
    """A failure parks; waking alone is not enough before the back-off is over."""
    waiting = backlog()
    assert ready(waiting, 100.0) == [LONE]
    waiting.park(LONE, 100.0)
    waiting.wake()
    assert (ready(waiting, 100.5), ready(waiting, 101.0)) == ([], [LONE])
    assert waiting.next_due() == 101.0


def test_a_changed_workload_is_woken() -> None:
    """The same pods again are no news, other pods are."""
    waiting = backlog()
    waiting.park(LONE, 100.0)
    waiting.update(LONE, Assembly(candidate([pod()])), 100.0)
    assert ready(waiting, 105.0) == []
    waiting.update(LONE, Assembly(candidate([pod(priority=1)])), 105.0)
    assert ready(waiting, 105.0) == [LONE]


def test_left_alone_while_binding() -> None:
    """No second attempt while bindings are under way; its failures are remembered until they are through."""
    waiting = backlog()
    waiting.park(LONE, 100.0, woken=True)
    waiting.binding_started(LONE)
    waiting.update(LONE, Assembly(), 102.0)
    assert waiting.parked == 1
    waiting.update(LONE, Assembly(candidate([pod()])), 102.0)
    assert (ready(waiting, 102.0), waiting.next_due()) == ([], None)
    waiting.binding_done(LONE)
    assert (ready(waiting, 102.0), waiting.next_due()) == ([LONE], 101.0)
    waiting.update(LONE, Assembly(), 103.0)
    assert (waiting.parked, waiting.candidates) == (0, ())


def test_holds_are_told_once_and_some_only_when_they_last() -> None:
    """Waiting for members is told after a second without change; an invalid gang at once."""
    waiting = Backlog(BackoffPolicy(), hold_grace_seconds=1.0)
    few = Hold(WorkloadId.gang("d/g"), Reason.GANG_WAITING_FOR_MEMBERS, "1 of 3", ("u1",))
    more = Hold(WorkloadId.gang("d/g"), Reason.GANG_WAITING_FOR_MEMBERS, "2 of 3", ("u1", "u2"))
    bad = Hold(WorkloadId.gang("d/bad"), Reason.GANG_INVALID, "mend", ("u9",))
    waiting.update(WorkloadId.gang("d/g"), Assembly(holds=(few,)), 100.0)
    waiting.update(WorkloadId.gang("d/bad"), Assembly(holds=(bad,)), 100.0)
    assert waiting.take_holds(100.0) == [bad]
    waiting.update(WorkloadId.gang("d/g"), Assembly(holds=(more,)), 100.9)
    assert waiting.take_holds(101.0) == []
    assert waiting.next_due() == 101.9
    assert waiting.take_holds(101.9) == [more]
    waiting.update(WorkloadId.gang("d/g"), Assembly(holds=(more,)), 110.0)
    assert waiting.take_holds(120.0) == []
    assert (waiting.next_due(), waiting.held) == (None, 2)
    waiting.update(WorkloadId.gang("d/g"), Assembly(candidate(members(3), gang(3))), 121.0)
    assert waiting.held == 1


def test_the_higher_one_is_tried_with_the_first_news_of_room() -> None:
    """A head with the longest back-off is due together with a newcomer behind it, so nobody slips into its room."""
    waiting, newcomer = backlog(), WorkloadId.pod("default/new")
    for _ in range(6):
        waiting.park(LONE, 100.0, need=Need(NewsKind.NONE, frozenset({"cpu"})))
    waiting.update(newcomer, Assembly(candidate([pod("new")])), 100.0)
    waiting.park(newcomer, 100.0, need=Need(NewsKind.NONE, frozenset({"memory"})))
    waiting.wake(news=freed(["cpu"]))
    assert ready(waiting, 100.0) == [LONE]
    waiting.park(LONE, 100.0, need=Need(NewsKind.NONE, frozenset({"cpu"})))
    assert ready(waiting, 100.0) == []


def test_gangs_bound_in_part_are_known_at_once() -> None:
    """Also while they rest after a failure; those that are whole, or wait whole, are none of them."""
    waiting = backlog()
    group = gang(2)
    half = [pod("a", gang=in_group(), node_name="n1"), pod("b", gang=in_group())]
    subject = WorkloadId.gang("default/train")
    waiting.update(subject, Assembly(candidate(half, group)), 0.0)
    waiting.park(subject, 0.0)
    assert [found.subject for found in waiting.begun] == [subject]
    waiting.update(subject, Assembly(candidate([pod("a", gang=in_group()), half[1]], group)), 0.0)
    assert waiting.begun == ()
