"""Pods that were told or asked to go: what is believed of them, for how long, and what an answer changes."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.evict.eviction_request import USED_MEMORY, EvictionOutcome, EvictionRecord, OutcomeKind, PendingVictim
from agent.core.evict.pending import EvictionMemory, EvictionRefusal, at_present, by_clock, heard
from agent.core.evict.request_queue import LONGEST_SECONDS
from model.pod.status import PodPhase
from tests.agent.core.evict.evicting import NOW, batch


def victim(since: float = NOW, until: float = NOW + 100, **more: Any) -> PendingVictim:
    return PendingVictim({USED_MEMORY: 1}, since, until, resource=USED_MEMORY, **more)


def memory(pending: dict[str, PendingVictim] | None = None, **more: Any) -> EvictionMemory:
    """In the middle of a run, memory freed a moment ago."""
    fields = {"begun": True, "record": EvictionRecord(None, NOW, pending or {})} | more
    return EvictionMemory(**fields)


def answered(before: EvictionMemory, kind: OutcomeKind, at: float = NOW + 5, retry: float = 0.0) -> EvictionMemory:
    return heard(before, (EvictionOutcome("a", kind, at, "", retry),))


def pods(*names: str, **more: Any) -> tuple[Any, ...]:
    return tuple(batch(name, **more).pod for name in names)


def test_an_answer_about_somebody_else_is_nothing() -> None:
    """Whoever is not pending has nothing to wait for."""
    before = memory({"b": victim()})
    assert answered(before, OutcomeKind.GONE) == before


def test_who_is_gone_is_forgotten() -> None:
    """The others stay."""
    after = answered(memory({"a": victim(), "b": victim()}), OutcomeKind.GONE)
    assert set(after.record.pending) == {"b"}
    assert after.refused == {}


def test_an_accepted_eviction_waits_for_the_end_alone() -> None:
    """The time in which an answer might have come is taken off, and the time it took added; once."""
    before = memory({"a": victim(NOW, NOW + LONGEST_SECONDS + 30)})
    after = answered(before, OutcomeKind.EVICTED, NOW + 5)
    found = after.record.pending["a"]
    assert (found.accepted, found.since_seconds, found.until_seconds) == (True, NOW + 5, NOW + 35)
    assert answered(after, OutcomeKind.EVICTED, NOW + 9) == after


def test_a_checkpoint_ends_a_notice() -> None:
    """Nothing is left to wait for; one that was never told is not."""
    told = memory({"a": victim(notified_until_seconds=NOW + 60)})
    assert answered(told, OutcomeKind.CHECKPOINTED).record.pending["a"].notified_until_seconds == NOW + 5
    asked = memory({"a": victim()})
    assert answered(asked, OutcomeKind.CHECKPOINTED) == asked


REFUSALS: dict[str, tuple[OutcomeKind, int, float, float]] = {
    "blocked once": (OutcomeKind.BLOCKED, 0, 0.0, 10.0),
    "blocked again": (OutcomeKind.BLOCKED, 1, 0.0, 20.0),
    "blocked for the fourth time": (OutcomeKind.BLOCKED, 3, 0.0, 80.0),
    "blocked for ever": (OutcomeKind.BLOCKED, 99, 0.0, 300.0),
    "failed once": (OutcomeKind.FAILED, 0, 0.0, 1.0),
    "failed for ever": (OutcomeKind.FAILED, 99, 0.0, 30.0),
    "the API server says how long": (OutcomeKind.BLOCKED, 0, 42.0, 42.0),
    "and says too long": (OutcomeKind.FAILED, 0, 4200.0, 30.0),
}


@pytest.mark.parametrize(("kind", "before", "retry", "wait"), REFUSALS.values(), ids=REFUSALS)
def test_who_could_not_go_is_left_alone(kind: OutcomeKind, before: int, retry: float, wait: float) -> None:
    """For longer each time, within bounds; it is no victim any more, and nothing rests for its sake."""
    refused = {"a": EvictionRefusal(NOW - 1, before)} if before else {}
    after = answered(memory({"a": victim()}, refused=refused), kind, NOW + 5, retry)
    assert after.refused == {"a": EvictionRefusal(NOW + 5 + wait, before + 1)}
    assert after.record.pending == {}
    assert after.record.memory_at_seconds is None


def test_a_rest_that_another_began_goes_on() -> None:
    """Only the refused pod's own moment is taken back."""
    before = memory({"a": victim(NOW - 3)}, record=EvictionRecord(NOW - 3, NOW, {"a": victim(NOW - 3)}))
    after = answered(before, OutcomeKind.BLOCKED)
    assert (after.record.cpu_at_seconds, after.record.memory_at_seconds) == (None, NOW)


def test_not_to_choose() -> None:
    """Those believed to be on their way, and those that refused a moment ago."""
    known = memory(
        {"a": victim(until=NOW + 1), "b": victim(until=NOW)},
        refused={"c": EvictionRefusal(NOW + 1, 1), "d": EvictionRefusal(NOW, 1)},
    )
    assert known.not_to_choose(NOW) == {"a", "c"}


def test_pods_that_are_gone_are_forgotten() -> None:
    """Also those that are through; without a list of pods nobody is."""
    known = memory({"a": victim(), "b": victim(), "c": victim()}, refused={"b": EvictionRefusal(NOW + 5, 1)})
    there = (*pods("a"), *pods("c", phase=PodPhase.SUCCEEDED))
    found = at_present(known, there, NOW)
    assert (set(found.record.pending), found.refused) == ({"a"}, {})
    assert set(at_present(known, None, NOW).record.pending) == {"a", "b", "c"}


def test_pods_that_others_delete_are_seen_once() -> None:
    """Since when, also after the clock was set back."""
    terminating = pods("a", deleting=True)
    first = at_present(memory(), terminating, NOW)
    assert first.ending == {"a": NOW}
    assert at_present(first, terminating, NOW + 7).ending == {"a": NOW}
    assert at_present(first, terminating, NOW - 7).ending == {"a": NOW - 7}
    assert at_present(first, (), NOW).ending == {}


@pytest.mark.parametrize(
    ("told", "kept"),
    [({}, False), ({"accepted": True}, True), ({"notified_until_seconds": NOW + 5}, True)],
)
def test_what_survives_a_restart(told: dict[str, Any], kept: bool) -> None:
    """An order that nobody answered may never have been sent; in the middle of a run it is believed."""
    known = {"a": victim(**told)}
    assert ("a" in at_present(memory(known, begun=False), pods("a"), NOW).record.pending) is kept
    assert "a" in at_present(memory(known), pods("a"), NOW).record.pending


def test_times_ahead_of_the_clock_count_as_now() -> None:
    """It was set back: nobody waits longer for that, and a wait has its bound."""
    known = memory(
        {"a": victim(NOW + 50, NOW + 150, notified_until_seconds=NOW + 80)},
        refused={"a": EvictionRefusal(NOW + 9000, 2)},
        record=EvictionRecord(NOW + 50, NOW - 50, {"a": victim(NOW + 50, NOW + 150, notified_until_seconds=NOW + 80)}),
    )
    found = at_present(known, pods("a"), NOW)
    assert (found.record.cpu_at_seconds, found.record.memory_at_seconds) == (NOW, NOW - 50)
    assert found.record.pending["a"] == victim(NOW, NOW + 100, notified_until_seconds=NOW + 30)
    assert found.refused == {"a": EvictionRefusal(NOW + 300, 2)}


def test_times_move_with_a_clock_that_is_set() -> None:
    """By as much; a clock that is merely corrected moves nothing, and the first tick has nothing to compare with."""
    known = memory(
        {"a": victim(notified_until_seconds=NOW + 60)}, refused={"b": EvictionRefusal(NOW + 9, 1)}, ending={"c": NOW}
    )
    first = by_clock(known, NOW, 100.0)
    assert first.record == known.record and first.clock_ahead_seconds == NOW - 100
    assert by_clock(first, NOW + 1.4, 101.0).record == known.record
    moved = by_clock(first, NOW + 3601, 101.0)
    assert moved.record.pending["a"] == victim(NOW + 3600, NOW + 3700, notified_until_seconds=NOW + 3660)
    assert (moved.record.cpu_at_seconds, moved.record.memory_at_seconds) == (None, NOW + 3600)
    assert (moved.refused, moved.ending) == ({"b": EvictionRefusal(NOW + 3609, 1)}, {"c": NOW + 3600})
