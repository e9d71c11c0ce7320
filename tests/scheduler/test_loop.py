"""When the loop turns."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from dream_loop import dream
from scheduler_builders import raw_node, raw_pod
from scheduler_fakes import FakeAnnouncer, FakeBinder, FakeClock, FakeEvictor, FakeMeter, FakeWriter

from kube import objects
from kube.dialects.koordinator.topology import ANNOTATION_CPU_TOPOLOGY
from kube.informer import Change, ChangeKind
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cycle import Cycle
from scheduler.history import DecisionHistory
from scheduler.loop import Loop
from scheduler.publish import Outlets, Publisher
from scheduler.settings import SchedulerSettings


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
