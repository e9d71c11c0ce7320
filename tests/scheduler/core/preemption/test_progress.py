"""A plan from its proposal to its end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from model.placement import EvictionPlan, PlanState, Victim
from model.pod.colocation import StandingNotice
from model.workload import WorkloadId
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.progress import (
    Evict,
    Notify,
    Progress,
    Step,
    Unnotify,
    VictimStates,
    advance,
    left_until,
)

QUIET, LOUD = (
    Victim("default/a", "a", "n1", WorkloadId.pod("default/a")),
    Victim("default/b", "b", "n1", WorkloadId.pod("default/b"), 30.0),
)
POLICY = PreemptionPolicySettings(longest_notice_seconds=60.0)


def new(*victims: Victim) -> Progress:
    return Progress(EvictionPlan(WorkloadId.pod("default/hp"), "default/hp", victims, ()))


def step(progress: Progress, now: float = 100.0, **facts: Any) -> Step:
    """All victims live unless said otherwise."""
    alive = frozenset(facts.pop("alive", {victim.uid for victim in progress.plan.victims}))
    return advance(
        progress,
        VictimStates(alive, **{k: frozenset(v) if isinstance(v, set) else v for k, v in facts.items()}),
        POLICY,
        now,
    )


def tell(victim: Victim, deadline: float, since: float = 100.0) -> Notify:
    return Notify(victim, deadline, since)


def test_at_once_without_notice() -> None:
    found = step(new(QUIET))
    assert found.actions == (Evict(QUIET),) and found.progress.plan.state is PlanState.TERMINATING


def test_repeated_until_it_happened() -> None:
    """An eviction that failed is asked for again; one that is under way is not."""
    first = step(new(QUIET)).progress
    assert step(first).actions == (Evict(QUIET),)
    assert step(first, deleting={"a"}).actions == ()


def test_released_when_all_are_gone() -> None:
    first = step(new(QUIET)).progress
    last = step(first, alive=set())
    assert last.progress.plan.state is PlanState.RELEASED and last.progress.over
    assert step(last.progress) == Step(last.progress)


def test_nothing_to_evict() -> None:
    assert step(new()).progress.plan.state is PlanState.RELEASED


def test_told_first() -> None:
    """Told, waited for, and evicted as soon as a checkpoint is complete that it began after being told."""
    told = step(new(LOUD))
    assert told.actions == (tell(LOUD, 130.0),) and told.progress.plan.state is PlanState.NOTIFIED
    waits = step(told.progress, 110.0, notified={"b"}, saved={"b": 99.0})
    assert waits.actions == () and waits.progress.plan.state is PlanState.CHECKPOINT_WAIT
    saved = step(waits.progress, 111.0, notified={"b"}, saved={"b": 105.0})
    assert saved.actions == (Evict(LOUD),) and saved.progress.plan.state is PlanState.TERMINATING


def test_what_was_saved_at_the_very_time_of_the_notice_counts() -> None:
    told = step(new(LOUD)).progress
    assert step(told, 111.0, notified={"b"}, saved={"b": 100.0}).actions == (Evict(LOUD),)


def test_told_again_where_that_failed() -> None:
    """The deadline is that of the first time."""
    told = step(new(LOUD)).progress
    assert step(told, 105.0).actions == (tell(LOUD, 130.0),)


def test_deadline() -> None:
    """Saved or not, and whether it could be told or not."""
    told = step(new(LOUD)).progress
    assert step(told, 130.0).actions == (Evict(LOUD),)


def test_longest_notice_is_bounded() -> None:
    greedy = Victim("default/c", "c", "n1", WorkloadId.pod("default/c"), 3600.0)
    assert step(new(LOUD, greedy)).progress.plan.deadline_seconds == 160.0


def test_all_are_told_and_end_together() -> None:
    """Who asks for no notice runs on until the room is of use; nobody waits for his checkpoint."""
    found = step(new(QUIET, LOUD))
    assert found.actions == (tell(QUIET, 130.0), tell(LOUD, 130.0))
    assert found.progress.plan.state is PlanState.NOTIFIED
    waits = step(found.progress, 110.0, notified={"a", "b"})
    assert waits.actions == ()
    assert step(waits.progress, 111.0, notified={"a", "b"}, saved={"b": 105.0}).actions == (Evict(QUIET), Evict(LOUD))


def test_a_job_goes_once_all_its_members_have_saved() -> None:
    """Though one of them alone asks for notice."""
    job = WorkloadId.gang("ml/train")
    one, two = Victim("ml/one", "1", "n1", job, 30.0), Victim("ml/two", "2", "n2", job)
    told = step(new(one, two)).progress
    half = step(told, 110.0, notified={"1", "2"}, saved={"1": 105.0, "2": 90.0})
    assert half.actions == ()
    whole = step(half.progress, 112.0, notified={"1", "2"}, saved={"1": 105.0, "2": 105.0})
    assert whole.actions == (Evict(one), Evict(two))


def standing(deadline: float, since: float = 80.0) -> StandingNotice:
    return StandingNotice(since, deadline, "PreemptionByScheduler", "gang/ml/big")


def test_after_a_restart_the_deadline_on_the_pods_holds() -> None:
    """No second full wait, and no early end: what was saved since the first notice counts."""
    found = step(new(LOUD), standing={"b": standing(110.0)})
    assert found.actions == (tell(LOUD, 110.0, since=80.0),)
    saved = step(new(LOUD), standing={"b": standing(110.0)}, saved={"b": 90.0})
    assert saved.actions == (Evict(LOUD),)
    assert step(new(LOUD), standing={"b": standing(99.0)}).actions == (Evict(LOUD),)


def test_after_a_restart_who_was_not_told_yet_has_all_the_time() -> None:
    """And with it the others, whose end is the same."""
    found = step(new(QUIET, LOUD), standing={"b": standing(110.0)})
    assert found.actions == (tell(QUIET, 130.0), tell(LOUD, 130.0, since=80.0))


def test_a_notice_that_somebody_wrote_gives_no_more_time_than_is_allowed() -> None:
    found = step(new(LOUD), standing={"b": standing(1e9, since=1e8)})
    assert found.actions == (tell(LOUD, 130.0, since=100.0),)


def test_a_victim_that_ends_by_itself_is_not_waited_for() -> None:
    told = step(new(LOUD, QUIET)).progress
    assert step(told, 105.0, alive={"a"}).actions == (Evict(QUIET),)


def test_aborted_before_anybody_went() -> None:
    """The preemptor is gone: those told stay, and know."""
    told = step(new(LOUD)).progress
    found = step(told, 105.0, notified={"b"}, wanted=False)
    assert found.actions == (Unnotify(LOUD),) and found.progress.plan.state is PlanState.ABORTED


def test_aborted_half_way() -> None:
    """A victim that does not terminate yet stays."""
    begun = step(new(QUIET, LOUD)).progress
    found = step(begun, 131.0, notified={"b"}, deleting={"a"}, wanted=False)
    assert found.actions == (Unnotify(LOUD),) and found.progress.plan.state is PlanState.ABORTED


def test_not_wanted_from_the_start() -> None:
    found = step(new(QUIET), wanted=False)
    assert found.actions == () and found.progress.plan.state is PlanState.ABORTED


ENDING = Victim("default/e", "e", "n1", WorkloadId.pod("default/e"), left_until_seconds=130.0)


def test_who_is_left_to_end_goes_when_its_time_is_over() -> None:
    """The others go at once."""
    found = step(new(QUIET, ENDING))
    assert found.actions == (Evict(QUIET),) and found.progress.plan.state is PlanState.TERMINATING
    assert step(found.progress, 129.0, alive={"e"}).actions == ()
    assert step(found.progress, 130.0, alive={"e"}).actions == (Evict(ENDING),)


def test_who_ended_by_itself_is_not_evicted() -> None:
    found = step(new(ENDING)).progress
    assert step(found, 110.0, alive=set()) == Step(in_state(found, PlanState.RELEASED))


def test_who_is_left_to_end_is_still_told_by_the_deadline_of_all() -> None:
    """It has the longer of the two."""
    found = step(new(LOUD, msgspec.structs.replace(ENDING, left_until_seconds=110.0)), 100.0)
    assert [type(action) for action in found.actions] == [Notify, Notify]
    last = step(found.progress, 130.0)
    assert [type(action) for action in last.actions] == [Evict, Evict]


def test_who_is_left_to_end_stays_where_nobody_wants_that_any_more() -> None:
    found = step(step(new(ENDING)).progress, wanted=False)
    assert found.actions == () and found.progress.plan.state is PlanState.ABORTED


@pytest.mark.parametrize(
    ("ends", "until"),
    [
        ((), 0.0),
        ((1_030.0,), 1_030.0),
        ((1_031.0,), 0.0),
        ((970.0,), 1_030.0),
        ((969.0,), 0.0),
        ((5_000.0, 1_001.0), 1_030.0),
    ],
    ids=[
        "nothing is known",
        "at the grace period's end",
        "later",
        "has just passed",
        "nobody kept it",
        "one is enough",
    ],
)
def test_who_ends_within_its_grace_period_has_all_of_it(ends: tuple[float, ...], until: float) -> None:
    assert left_until(ends, 30.0, 1_000.0) == until


def in_state(progress: Progress, state: PlanState) -> Progress:
    return msgspec.structs.replace(progress, plan=msgspec.structs.replace(progress.plan, state=state))
