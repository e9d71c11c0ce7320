"""The order of writes to one pod."""

from __future__ import annotations

import asyncio

import pytest
from scheduler_fakes import FakeAnnouncer, FakeBinder, FakeClock, FakeMeter, FakeWriter

from model.fault import KubernetesFault
from model.placement import Placement
from scheduler import facts
from scheduler.core.parking import BackoffPolicy
from scheduler.core.phase import GangStatus
from scheduler.ports import Named
from scheduler.publish import Publisher
from scheduler.settings import Settings
from scheduler.turn import Batch, Bind, GangNote, Note, Turn

POD = Named("default", "p1", "u1")
GANG = Named("default", "train", "u2")


class SlowWriter(FakeWriter):
    """Writes once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def unscheduled(self, pod: Named, message: str, *, first: bool) -> None:
        self.begun.set()
        await self.go.wait()
        await super().unscheduled(pod, message, first=first)


def batch() -> Batch:
    return Batch("pod/default/p1", False, (Bind(POD, Placement("default/p1", "u1", "n1"), 0.0),))


def test_no_condition_is_written_after_the_binding() -> None:
    """A binding waits for a condition under way and drops one that has not begun."""

    async def body() -> None:
        writer, binder, told = SlowWriter(), FakeBinder(), list[facts.Fact]()
        publisher = Publisher(binder, writer, FakeAnnouncer(), FakeMeter(), FakeClock(), Settings())
        async with asyncio.TaskGroup() as group:
            publisher.publish(Turn(notes=[Note(POD, "one")]), group, told.append)
            await writer.begun.wait()
            publisher.publish(Turn(notes=[Note(POD, "two")]), group, told.append)
            publisher.publish(Turn(batches=[batch()]), group, told.append)
            for _ in range(5):
                await asyncio.sleep(0)
            assert binder.assigned == {}
            writer.go.set()
        assert (binder.assigned, writer.conditions) == ({"p1": "n1"}, {"p1": "one"})
        assert told == [facts.BatchDone("pod/default/p1")]

    asyncio.run(body())


def test_the_newest_status_wins() -> None:
    """Of several statuses of one PodGroup only the newest that has not begun is written."""

    async def body() -> None:
        writer = FakeWriter()
        publisher = Publisher(FakeBinder(), writer, FakeAnnouncer(), FakeMeter(), FakeClock(), Settings())
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                publisher.publish(
                    Turn(gang_notes=[GangNote(GANG, GangStatus("Scheduling", number))]), group, lambda fact: None
                )
        assert writer.statuses == {"train": GangStatus("Scheduling", 2)}

    asyncio.run(body())


AT_ONCE = Settings(backoff=BackoffPolicy(0.0, 0.0))


def publish(turn: Turn, binder: FakeBinder, writer: FakeWriter) -> list[facts.Fact]:
    """All writes of a turn to their end; what they told."""
    told: list[facts.Fact] = []

    async def body() -> None:
        publisher = Publisher(binder, writer, FakeAnnouncer(), FakeMeter(), FakeClock(), AT_ONCE)
        async with asyncio.TaskGroup() as group:
            publisher.publish(turn, group, told.append)

    asyncio.run(body())
    return told


def test_a_lost_answer_is_asked_about_until_it_is_known() -> None:
    """While the API server does not say whether the pod is bound, its room is not given back."""
    binder = FakeBinder()
    binder.lost, binder.silent = {"p1"}, 3
    assert publish(Turn(batches=[batch()]), binder, FakeWriter()) == [facts.BatchDone("pod/default/p1")]
    assert (binder.assigned, binder.silent) == ({"p1": "n1"}, 0)


@pytest.mark.parametrize(("status", "asked"), [(0, 1), (500, 1), (504, 1), (403, 0), (409, 0)])
def test_a_refused_binding_is_released(status: int, asked: int) -> None:
    """At once where the answer is certain; otherwise once the pod was seen not to be bound."""
    binder = FakeBinder()
    binder.failures["p1"], binder.silent = KubernetesFault("POST", "refused", status=status), 1
    released = facts.BindingReleased("pod/default/p1", "u1", "POST: refused", status)
    assert publish(Turn(batches=[batch()]), binder, FakeWriter()) == [released, facts.BatchDone("pod/default/p1")]
    assert binder.silent == 1 - asked


def test_a_status_that_failed_is_written_again() -> None:
    """A PodGroup's status is not lost with one refusal."""
    writer, status = FakeWriter(), GangStatus("Running", 3, 3)
    writer.failing = True
    assert publish(Turn(gang_notes=[GangNote(GANG, status)]), FakeBinder(), writer) == []
    assert writer.statuses == {"train": status}


def test_an_overtaken_first_condition_still_dates_it() -> None:
    """The condition that is written in its place gets the transition time."""
    writer = FakeWriter()
    publish(Turn(notes=[Note(POD, "one"), Note(POD, "two", first=False)]), FakeBinder(), writer)
    assert (writer.writes, writer.conditions, writer.dated) == (1, {"p1": "two"}, {"p1": True})
    publish(Turn(notes=[Note(POD, "three", first=False)]), FakeBinder(), writer)
    assert writer.dated == {"p1": False}
