"""The order of writes to one pod."""

from __future__ import annotations

import asyncio

from scheduler_fakes import FakeAnnouncer, FakeBinder, FakeClock, FakeMeter, FakeWriter

from model.placement import Placement
from scheduler import facts
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
            assert binder.bound == {}
            writer.go.set()
        assert (binder.bound, writer.conditions) == ({"p1": "n1"}, {"p1": "one"})
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
