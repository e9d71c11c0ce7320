"""kill -9 at each step of an admission and of an eviction: no job runs twice, no quota leaks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suspended_world import SuspendedWorld, priority_class

from scheduler.core.ledger.claim import ClaimKind

HIGH = priority_class("high", 1000)


def admitted(world: SuspendedWorld) -> None:
    """One runs, and another waits for it; both end."""
    world.job("one")
    world.settle()
    world.job("two")
    world.settle()
    world.end("one")
    world.settle()
    world.end("two")
    world.settle()


def preempted(world: SuspendedWorld) -> None:
    """One goes for a more urgent one, and comes back; both end."""
    world.job("one")
    world.settle()
    world.job("two", pods=1, priority="high")
    world.settle()
    world.end("two")
    world.settle()
    world.end("one")
    world.settle()


STEPS: dict[str, tuple[Callable[[SuspendedWorld], None], str, int]] = {
    "its Workload": (admitted, "make one", 2),
    "its admission": (admitted, "admit one", 2),
    "its start": (admitted, "start one", 2),
    "its first binding": (admitted, "bind one-0", 2),
    "its last binding": (admitted, "bind one-1", 2),
    "its progress": (admitted, "tell one", 2),
    "its end": (admitted, "finish one", 2),
    "what the next waits for": (admitted, "pending two", 2),
    "the next admission": (admitted, "admit two", 2),
    "the next start": (admitted, "start two", 2),
    "the eviction": (preempted, "evict one", 4),
    "the suspension": (preempted, "stop one", 4),
    "the restoration": (preempted, "restore one", 4),
    "the release": (preempted, "release one", 4),
    "the preemptor's admission": (preempted, "admit two", 4),
    "the preemptor's start": (preempted, "start two", 4),
    "the preemptor's binding": (preempted, "bind two-0", 4),
    "the binding of the run that comes back": (preempted, "bind one-2", 4),
}


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("story", "step", "made"), STEPS.values(), ids=STEPS)
def test_killed(story: Callable[[SuspendedWorld], None], step: str, made: int, before: bool) -> None:
    """Scheduler and controller die there: the outcome is that of a life without it."""
    world = SuspendedWorld(HIGH)
    world.api.kill = step, before
    world.api.checks.append(lambda: bounded(world))
    story(world)
    assert world.kills == 1
    assert world.made["one"] == made
    assert [world.status(name).finished for name in ("one", "two")] == [True, True]
    ledger = world.world.cache.ledger
    assert not ledger.claims(ClaimKind.ADMITTED)
    used = {each.queue.name: each for each in world.world.cycle.standings()}["team"]
    assert {cell: amount for cell, each in used.cells.items() if (amount := each.used + each.nominated)} == {}


def bounded(world: SuspendedWorld) -> None:
    """At no moment has a job more pods with nodes than it asks for, or the queue more than its 8 GPUs."""
    running = {name: len(world.nodes(name)) for name in ("one", "two")}
    assert running["one"] <= 2, running
    assert sum(running.values()) * 4 <= 8, running


def test_seats_outlive_a_kill() -> None:
    """Of a job that was admitted and has no pod yet: what comes meanwhile gets other nodes."""
    world = SuspendedWorld(HIGH, nodes=3)
    world.api.kill = "start one", True
    world.job("one")
    while not world.kills:
        world.settle(rounds=1)
    assert world.pods("one") == []
    world.pod("other")
    world.pod("next")
    world.settle()
    assert (world.nodes("one"), world.nodes("other"), world.nodes("next")) == (["a0", "a1"], ["a2"], [])


def test_a_pod_that_is_made_again_has_its_seat() -> None:
    """Whoever waited for room does not get that of a pod of an admitted job that failed, nor its quota."""
    world = SuspendedWorld(HIGH)
    world.job("one")
    world.settle()
    world.pod("other")
    world.job("two", pods=1)
    world.settle()
    world.lost("one")
    world.settle()
    assert (world.nodes("one"), world.nodes("other"), world.nodes("two")) == (["a0", "a1"], [], [])


def test_a_stranger_that_names_the_workload() -> None:
    """A pod that says it is of an admitted job, and is read before its Workload, takes none of its seats."""
    world = SuspendedWorld(HIGH, nodes=3)
    world.job("one")
    world.settle()
    world.pod("stranger", annotations={"kueue.x-k8s.io/workload": world.workload("one").name})
    world.start()
    world.settle()
    assert (world.nodes("one"), world.nodes("stranger")) == (["a0", "a1"], ["a2"])
    record = world.world.cache.pods.find("default", "stranger")
    assert record is not None and record.pod.spec.gang is None
