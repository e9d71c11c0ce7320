"""A plan from its proposal to its end."""

from __future__ import annotations

from typing import Any

from model.placement import EvictionPlan, PlanState, Victim
from model.workload import WorkloadId
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.progress import Evict, Notify, Progress, Step, Unnotify, VictimStates, advance

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
    """Told, waited for, and evicted as soon as it has saved after being told."""
    told = step(new(LOUD))
    assert told.actions == (Notify(LOUD, 130.0),) and told.progress.plan.state is PlanState.NOTIFIED
    waits = step(told.progress, 110.0, notified={"b"}, saved={"b": 99.0})
    assert waits.actions == () and waits.progress.plan.state is PlanState.CHECKPOINT_WAIT
    saved = step(waits.progress, 111.0, notified={"b"}, saved={"b": 105.0})
    assert saved.actions == (Evict(LOUD),) and saved.progress.plan.state is PlanState.TERMINATING


def test_told_again_where_that_failed() -> None:
    told = step(new(LOUD)).progress
    assert step(told, 105.0).actions == (Notify(LOUD, 130.0),)


def test_deadline() -> None:
    """Saved or not, and whether it could be told or not."""
    told = step(new(LOUD)).progress
    assert step(told, 130.0).actions == (Evict(LOUD),)


def test_longest_notice_is_bounded() -> None:
    greedy = Victim("default/c", "c", "n1", WorkloadId.pod("default/c"), 3600.0)
    assert step(new(LOUD, greedy)).progress.plan.deadline_seconds == 160.0


def test_who_asks_for_no_notice_goes_at_once() -> None:
    found = step(new(QUIET, LOUD))
    assert set(found.actions) == {Evict(QUIET), Notify(LOUD, 130.0)}
    assert found.progress.plan.state is PlanState.NOTIFIED


def test_a_victim_that_ends_by_itself_is_not_waited_for() -> None:
    told = step(new(LOUD, QUIET)).progress
    assert step(told, 105.0, alive={"a"}, deleting={"a"}).progress.plan.state is PlanState.TERMINATING


def test_aborted_before_anybody_went() -> None:
    """The preemptor is gone: those told stay, and know."""
    told = step(new(LOUD)).progress
    found = step(told, 105.0, notified={"b"}, wanted=False)
    assert found.actions == (Unnotify(LOUD),) and found.progress.plan.state is PlanState.ABORTED


def test_aborted_half_way() -> None:
    """A victim that does not terminate yet stays."""
    begun = step(new(QUIET, LOUD)).progress
    found = step(begun, 105.0, notified={"b"}, deleting={"a"}, wanted=False)
    assert found.actions == (Unnotify(LOUD),) and found.progress.plan.state is PlanState.ABORTED


def test_not_wanted_from_the_start() -> None:
    found = step(new(QUIET), wanted=False)
    assert found.actions == () and found.progress.plan.state is PlanState.ABORTED
