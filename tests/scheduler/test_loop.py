"""When the loop turns."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from dream_loop import dream
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import FakeAnnouncer, FakeBinder, FakeClock, FakeEvictor, FakeMeter, FakeWriter, World
from structlog.testing import capture_logs

from kube import objects
from kube.dialects.koordinator.topology import ANNOTATION_CPU_TOPOLOGY
from kube.informer import Change, ChangeKind
from model.reason import Reason
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.queues.policy import QueuePolicy
from scheduler.cycle import Cycle
from scheduler.history import DecisionHistory
from scheduler.loop import Loop
from scheduler.publish import Outlets, Publisher
from scheduler.settings import SchedulerSettings
from scheduler.steps.queue_figures import NO_QUEUE
from scheduler.steps.turn import Turn


def loop_of(binder: FakeBinder, clock: FakeClock, leads: list[bool]) -> Loop:
    settings = SchedulerSettings()
    cache = ClusterCache(settings.served, settings.load, settings.gangs)
    outlets = Outlets(binder, FakeWriter(), FakeEvictor(), FakeAnnouncer(), leading=lambda: bool(leads))
    publisher = Publisher(outlets, FakeMeter(), clock, settings)
    return Loop(Cycle(cache, settings), publisher, DecisionHistory(0), FakeMeter(), clock, settings)


@pytest.mark.parametrize("leads", [True, False])
def test_a_drain_ends_the_decisions(leads: bool) -> None:
    """What is told afterwards is not placed, and the loop comes to its end, whether the lease is renewed in time or not."""

    async def body() -> None:
        binder = FakeBinder()
        loop = loop_of(binder, FakeClock(), [True] if leads else [])
        running = asyncio.create_task(loop.run())
        loop.enqueue(facts.NodeSeen(Change(ChangeKind.ADDED, raw_node("n1"))))
        await asyncio.sleep(1)
        await loop.drain()
        loop.enqueue(facts.PodSeen(Change(ChangeKind.ADDED, raw_pod("p1"))))
        await running
        assert binder.assigned == {}

    dream(body())


def test_without_the_lease_nothing_is_decided_and_the_loop_is_alive() -> None:
    """What happened meanwhile is taken in with the first turn after it."""

    async def body() -> None:
        clock, binder, leads = FakeClock(), FakeBinder(), list[bool]()
        loop = loop_of(binder, clock, leads)
        running = asyncio.create_task(loop.run())
        loop.enqueue(facts.NodeSeen(Change(ChangeKind.ADDED, raw_node("n1"))))
        loop.enqueue(facts.PodSeen(Change(ChangeKind.ADDED, raw_pod("p1"))))
        await asyncio.sleep(100)
        clock.now += 100
        await asyncio.sleep(1)
        assert (loop.turned.is_set(), loop.last_turn_seconds, binder.assigned) == (False, clock.now, {})
        leads.append(True)
        await asyncio.sleep(1)
        assert binder.assigned == {"p1": "n1"}
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    dream(body())


def metric(node: str, word: int) -> objects.NodeMetric:
    return objects.NodeMetric(objects.Metadata(node), None, f"word {word}")


def topology(node: str, word: int) -> objects.NodeResourceTopology:
    return objects.NodeResourceTopology(objects.Metadata(node, annotations={ANNOTATION_CPU_TOPOLOGY: f"word {word}"}))


@pytest.mark.parametrize("of_agent", [metric, topology])
def test_of_what_an_agent_writes_the_newest_word_is_read(of_agent: Callable[[str, int], Any]) -> None:
    """An agent that writes faster than words are read makes none of them wait, and one turn no longer."""

    async def body() -> None:
        loop = loop_of(FakeBinder(), FakeClock(), [True])
        for node, word in itertools.product(("n1", "n2"), range(1_000)):
            loop.enqueue(facts.ObjectSeen(Change(ChangeKind.MODIFIED, of_agent(node, word))))
        loop.enqueue(facts.NodeSeen(Change(ChangeKind.ADDED, raw_node("n1"))))
        async with asyncio.TaskGroup() as group:
            turn = loop.step(group)
        assert [refusal.kind for refusal in turn.refusals] == [type(of_agent("n1", 0)).__name__] * 2

    asyncio.run(body())


def test_an_agent_is_heard_once_in_a_while() -> None:
    """Who writes all the time costs the turns of others no more than that; the newest word is read once it is due."""

    async def body() -> None:
        clock = FakeClock()
        loop = loop_of(FakeBinder(), clock, [True])
        seen = []
        for word, later in enumerate((0.0, 1.0, 3.0, 0.9, 0.2, 0.1)):
            clock.now += later
            loop.enqueue(facts.ObjectSeen(Change(ChangeKind.MODIFIED, metric("n1", word))))
            loop.enqueue(facts.ObjectSeen(Change(ChangeKind.MODIFIED, metric(f"other-{word}", word))))
            async with asyncio.TaskGroup() as group:
                turn = loop.step(group)
            seen.append(len(turn.refusals))
        assert seen == [2, 1, 1, 1, 2, 1]

    asyncio.run(body())


def test_a_node_that_offers_too_much_again_and_again_fills_no_log() -> None:
    """Another impossible amount each time, or none between two; another node's line is not held back by that."""

    async def body() -> list[str]:
        clock = FakeClock()
        loop = loop_of(FakeBinder(), clock, [True])

        def told(name: str, amount: int) -> None:
            node = raw_node(name, batch_cpu=str(amount))
            capacity = {**(node.status.capacity or {}), "cpu": "1"}
            node = msgspec.structs.replace(node, status=objects.NodeStatus(capacity, node.status.allocatable))
            loop.enqueue(facts.NodeSeen(Change(ChangeKind.MODIFIED, node)))

        with capture_logs() as logs:
            async with asyncio.TaskGroup() as group:
                for number in range(100):
                    told("n1", 2000 + number if number % 3 else 1000)
                    loop.step(group)
                told("n2", 2000)
                loop.step(group)
                clock.now += 10.0
                told("n1", 9000)
                loop.step(group)
        return [line["error"].split(":")[0] for line in logs if line["event"] == "object left out"]

    assert asyncio.run(body()) == ["Node n1", "Node n2", "Node n1"]


def test_between_turns_with_more_to_do_all_else_goes_on() -> None:
    """A binding takes several passes of the event loop: with one a turn it would take as many turns."""

    async def body() -> None:
        loop, turns = loop_of(FakeBinder(), FakeClock(), [True]), 0

        def slow(inbox: object, now: float) -> Turn:
            nonlocal turns
            turns += 1
            time.sleep(0.05)
            return Turn(more=True)

        loop._cycle.turn = slow  # type: ignore[method-assign]
        running = asyncio.create_task(loop.run())
        await asyncio.sleep(0)
        before = turns
        for _ in range(12):
            await asyncio.sleep(0)
        assert turns - before <= 3
        await loop.drain()
        await running

    asyncio.run(body())


def test_what_is_counted_of_jobs() -> None:
    """A gang and a pod that were placed, one that was taken for another, and the figures of queues now and then."""
    world = World().see(raw_node(batch_cpu="1000"), raw_group("train", 2), raw_pod("lone", batch_cpu="200"))
    world.see(*(raw_pod(f"t{i}", batch_cpu="400", group="train", created=1.0) for i in range(2)))
    world.turn()
    assert sorted(world.meter.jobs) == [("default", "Pod", "scheduled"), ("default", "Pod", "scheduled")]
    assert world.meter.gangs == [("scheduled", False)]
    world.see(raw_pod("lone", batch_cpu="200", node_name="n1", phase="Running"), raw_pod("high", priority=10)).turn()
    assert [reason for *_, reason in world.meter.losses] == [Reason.PREEMPTING] * len(world.meter.losses)
    assert not any(world.meter.series["training_job_queue_length"])
    world.turn(after=6.0)
    assert [sample.value for sample in world.meter.series["training_job_queue_length"]] == [1]


def test_a_gang_that_is_out_of_time() -> None:
    """Counted as that, for the job and for the gang."""
    world = World().see(raw_node(batch_cpu="100"), raw_group("train", 2))
    world.see(*(raw_pod(f"t{i}", group="train") for i in range(2))).turn()
    world.turn(after=601.0)
    assert world.meter.jobs == [("default", "Pod", "timeout")] and world.meter.gangs == [("timeout", True)]


def test_no_text_of_a_pod_is_counted_by() -> None:
    """Queues and kinds of owners that somebody makes up have one label each, so /metrics stays as long as it is."""
    settings = SchedulerSettings(queues=QueuePolicy(enable=False))
    world = World(settings).see(raw_node(batch_cpu="1000"))
    made_up = objects.OwnerReference(kind="K" * 300, name="o", uid="o", controller=True)
    for name in ("a", "b"):
        found = raw_pod(name, labels={"sublet.dev/queue": f"made-up-{name}"})
        world.see(msgspec.structs.replace(found, metadata=_owned(found.metadata, made_up))).turn()
    assert world.meter.jobs == [(NO_QUEUE, "other", "scheduled")] * 2
    assert set(world.meter.queue_names) == {"default", "", NO_QUEUE}


def _owned(metadata: objects.Metadata, owner: objects.OwnerReference) -> objects.Metadata:
    return msgspec.structs.replace(metadata, owner_references=[owner])
