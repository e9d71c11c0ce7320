"""The order of writes to one pod."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from dream_loop import dream
from scheduler_fakes import FakeAnnouncer, FakeBinder, FakeClock, FakeEvictor, FakeMeter, FakeWriter
from structlog.testing import capture_logs

from model.fault import KubernetesFault
from model.placement import Placement
from model.workload import GangPhase, GangTimes, WorkloadId
from scheduler.cache import facts
from scheduler.core.gangs.phase import GangStatus
from scheduler.core.queueing.backoff import BackoffPolicy, delay_seconds
from scheduler.ports import NamedObject
from scheduler.publish import FairSlots, Outlets, Publisher
from scheduler.settings import SchedulerSettings
from scheduler.steps.turn import Bind, BindingBatch, Eviction, GangStatusWrite, PodConditionWrite, Turn

POD = NamedObject("default", "p1", "u1")
GANG = NamedObject("default", "train", "u2")


class SlowWriter(FakeWriter):
    """Writes once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def unscheduled(self, pod: NamedObject, message: str, *, first: bool, nominated: str | None = None) -> None:
        self.begun.set()
        await self.go.wait()
        await super().unscheduled(pod, message, first=first, nominated=nominated)


def publisher_of(binder: FakeBinder, writer: FakeWriter, settings: SchedulerSettings) -> Publisher:
    outlets = Outlets(binder, writer, FakeEvictor(), FakeAnnouncer())
    return Publisher(outlets, FakeMeter(), FakeClock(), settings)


def batch() -> BindingBatch:
    return BindingBatch(WorkloadId.pod("default/p1"), False, (Bind(POD, Placement("default/p1", "u1", "n1"), 0.0),))


def test_no_condition_is_written_after_the_binding() -> None:
    """A binding waits for a condition under way and drops one that has not begun."""

    async def body() -> None:
        writer, binder, told = SlowWriter(), FakeBinder(), list[facts.Fact]()
        publisher = publisher_of(binder, writer, SchedulerSettings())
        async with asyncio.TaskGroup() as group:
            publisher.publish(Turn(pod_conditions=[PodConditionWrite(POD, "one")]), group, told.append)
            await writer.begun.wait()
            publisher.publish(Turn(pod_conditions=[PodConditionWrite(POD, "two")]), group, told.append)
            publisher.publish(Turn(batches=[batch()]), group, told.append)
            for _ in range(5):
                await asyncio.sleep(0)
            assert binder.assigned == {}
            writer.go.set()
        assert (binder.assigned, writer.conditions) == ({"p1": "n1"}, {"p1": "one"})
        assert told == [facts.BatchDone(WorkloadId.pod("default/p1"))]

    asyncio.run(body())


def test_the_newest_status_wins() -> None:
    """Of several statuses of one PodGroup only the newest that has not begun is written."""

    async def body() -> None:
        writer = FakeWriter()
        publisher = publisher_of(FakeBinder(), writer, SchedulerSettings())
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                publisher.publish(
                    Turn(gang_statuses=[GangStatusWrite(GANG, GangStatus(GangPhase.SCHEDULING, number))]),
                    group,
                    lambda fact: None,
                )
        assert writer.statuses == {"train": GangStatus(GangPhase.SCHEDULING, 2)}

    asyncio.run(body())


AT_ONCE = SchedulerSettings(backoff=BackoffPolicy(0.0, 0.0))


def publish(turn: Turn, binder: FakeBinder, writer: FakeWriter) -> list[facts.Fact]:
    """All writes of a turn to their end; what they told."""
    told: list[facts.Fact] = []

    async def body() -> None:
        publisher = publisher_of(binder, writer, AT_ONCE)
        async with asyncio.TaskGroup() as group:
            publisher.publish(turn, group, told.append)

    asyncio.run(body())
    return told


def test_a_lost_answer_is_asked_about_until_it_is_known() -> None:
    """While the API server does not say whether the pod is bound, its room is not given back."""
    binder = FakeBinder()
    binder.lost, binder.silent = {"p1"}, 3
    assert publish(Turn(batches=[batch()]), binder, FakeWriter()) == [facts.BatchDone(WorkloadId.pod("default/p1"))]
    assert (binder.assigned, binder.silent) == ({"p1": "n1"}, 0)


@pytest.mark.parametrize("status", [403, 404, 409, 422, 429])
def test_a_refused_binding_is_released(status: int) -> None:
    """At once: the answer is certain, nobody needs to be asked."""
    binder = FakeBinder()
    binder.failures["p1"], binder.silent = KubernetesFault("POST", "refused", status=status), 1
    released = facts.BindingReleased(WorkloadId.pod("default/p1"), "u1", "POST: refused", status)
    assert publish(Turn(batches=[batch()]), binder, FakeWriter()) == [
        released,
        facts.BatchDone(WorkloadId.pod("default/p1")),
    ]
    assert (binder.assigned, binder.silent) == ({}, 1)


@pytest.mark.parametrize("status", [0, 500, 504])
def test_a_binding_that_failed_without_a_refusal_is_made_as_it_was(status: int) -> None:
    """The pod was seen not to be bound; the write may come yet, so the same node is asked for again."""
    binder = FakeBinder()
    binder.failures["p1"], binder.silent = KubernetesFault("POST", "broken", status=status), 1
    assert publish(Turn(batches=[batch()]), binder, FakeWriter()) == [facts.BatchDone(WorkloadId.pod("default/p1"))]
    assert (binder.assigned, binder.silent) == ({"p1": "n1"}, 0)


class LateBinder(FakeBinder):
    """The first write is answered with 504 and carried out only while the pod is asked about for the second time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def bind(self, placement: Placement) -> None:
        self.asked.append(placement.node)
        if len(self.asked) == 1:
            raise KubernetesFault("POST", "504", status=504)
        self.assigned.setdefault("p1", "n1")
        raise KubernetesFault("POST", "409 assigned already", status=409)


def test_a_write_that_comes_late_is_the_binding() -> None:
    """The repeated one is refused since the first came through: the pod is bound, and its room is not given back."""
    binder = LateBinder()
    assert publish(Turn(batches=[batch()]), binder, FakeWriter()) == [facts.BatchDone(WorkloadId.pod("default/p1"))]
    assert (binder.asked, binder.assigned) == (["n1", "n1"], {"p1": "n1"})


class BrokenBinder(FakeBinder):
    """Never binds, and never says no."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def bind(self, placement: Placement) -> None:
        self.asked += 1
        raise KubernetesFault("POST", "500 webhook failed", status=500)


def test_a_server_that_only_fails_is_given_up_in_the_end() -> None:
    """After a minute of attempts on one node the workload is planned again, and says why it waits."""
    binder = BrokenBinder()
    released = facts.BindingReleased(WorkloadId.pod("default/p1"), "u1", "POST: 500 webhook failed", 500)
    assert publish(Turn(batches=[batch()]), binder, FakeWriter()) == [
        released,
        facts.BatchDone(WorkloadId.pod("default/p1")),
    ]
    policy = BackoffPolicy()
    assert sum(delay_seconds(attempt, policy) for attempt in range(1, binder.asked)) == 55.0


def test_a_status_that_failed_is_written_again() -> None:
    """A PodGroup's status is not lost with one refusal."""
    writer, status = FakeWriter(), GangStatus(GangPhase.RUNNING, 3, 3)
    writer.failing = True
    assert publish(Turn(gang_statuses=[GangStatusWrite(GANG, status)]), FakeBinder(), writer) == []
    assert writer.statuses == {"train": status}


def test_an_overtaken_first_condition_still_dates_it() -> None:
    """The condition that is written in its place gets the transition time."""
    writer = FakeWriter()
    publish(
        Turn(pod_conditions=[PodConditionWrite(POD, "one"), PodConditionWrite(POD, "two", first=False)]),
        FakeBinder(),
        writer,
    )
    assert (writer.writes, writer.conditions, writer.dated) == (1, {"p1": "two"}, {"p1": True})
    publish(Turn(pod_conditions=[PodConditionWrite(POD, "three", first=False)]), FakeBinder(), writer)
    assert writer.dated == {"p1": False}


def test_a_victim_is_evicted_again_until_it_is_done() -> None:
    """Two refusals, then success: one Event, two counts."""

    async def body() -> None:
        evictor, announcer, meter = FakeEvictor(), FakeAnnouncer(), FakeMeter()
        evictor.failures["p1"] = KubernetesFault("PATCH", "503", status=503)
        outlets = Outlets(FakeBinder(), FakeWriter(), evictor, announcer)
        async with asyncio.TaskGroup() as group:
            turn = Turn(evictions=[Eviction(POD, "PreemptionByScheduler", "for train", "Preempted by train")])
            Publisher(outlets, meter, FakeClock(), AT_ONCE).publish(turn, group, list[facts.Fact]().append)
        assert evictor.evicted == {"p1": "for train"}
        assert (announcer.events, meter.evictions) == ([("Preempted", "p1", "Preempted by train")], ["failed", "done"])

    asyncio.run(body())


def test_a_victim_that_takes_no_condition_goes_without() -> None:
    """It is as large as an object may be: room is kept for the preemptor, who would wait for ever."""

    async def body() -> None:
        evictor, meter = FakeEvictor(), FakeMeter()
        evictor.full.add("p1")
        outlets = Outlets(FakeBinder(), FakeWriter(), evictor, FakeAnnouncer())
        async with asyncio.timeout(3600), asyncio.TaskGroup() as group:
            turn = Turn(evictions=[Eviction(POD, "PreemptionByScheduler", "for train", "Preempted by train")])
            Publisher(outlets, meter, FakeClock(), AT_ONCE).publish(turn, group, list[facts.Fact]().append)
        assert (evictor.evicted, meter.evictions) == ({"p1": "for train"}, ["failed", "done"])

    asyncio.run(body())


def test_who_does_not_lead_writes_nothing() -> None:
    """Bindings come back as not tried; conditions, statuses and evictions wait until it leads again."""

    async def body() -> None:
        binder, writer, evictor, told = FakeBinder(), FakeWriter(), FakeEvictor(), list[facts.Fact]()
        leads: list[bool] = []
        outlets = Outlets(binder, writer, evictor, FakeAnnouncer(), leading=lambda: bool(leads))
        turn = Turn(
            batches=[batch()],
            pod_conditions=[PodConditionWrite(NamedObject("default", "p2", "u3"), "waits")],
            gang_statuses=[GangStatusWrite(GANG, GangStatus(GangPhase.RUNNING))],
            evictions=[Eviction(NamedObject("default", "p3", "u4"), "PreemptionByScheduler", "m", "n")],
        )
        async with asyncio.TaskGroup() as group:
            Publisher(outlets, FakeMeter(), FakeClock(), AT_ONCE).publish(turn, group, told.append)
            await asyncio.sleep(3600)
            assert (binder.assigned, writer.writes, writer.statuses, evictor.evicted) == ({}, 0, {}, {})
            assert told == [
                facts.BindingReleased(WorkloadId.pod("default/p1"), "u1"),
                facts.BatchDone(WorkloadId.pod("default/p1")),
            ]
            leads.append(True)
        assert (binder.assigned, writer.writes, len(writer.statuses), list(evictor.evicted)) == ({}, 1, 1, ["p3"])

    dream(body())


def test_an_uncertain_binding_is_not_repeated_by_who_does_not_lead() -> None:
    """Its room stays taken meanwhile; with the lease renewed it is asked for again."""

    async def body() -> None:
        binder, told, leads = FakeBinder(), list[facts.Fact](), [True]
        binder.failures["p1"] = KubernetesFault("POST", "no answer")
        outlets = Outlets(binder, FakeWriter(), FakeEvictor(), FakeAnnouncer(), leading=lambda: bool(leads))
        async with asyncio.TaskGroup() as group:
            Publisher(outlets, FakeMeter(), FakeClock(), SchedulerSettings()).publish(
                Turn(batches=[batch()]), group, told.append
            )
            await asyncio.sleep(0.5)
            leads.clear()
            await asyncio.sleep(3600)
            assert (binder.assigned, told) == ({}, [])
            leads.append(True)
        assert (binder.assigned, told) == ({"p1": "n1"}, [facts.BatchDone(WorkloadId.pod("default/p1"))])

    dream(body())


def test_an_overtaken_nomination_is_written_all_the_same() -> None:
    """The newer note says nothing of the nomination, so the older one's word stands."""

    async def body() -> None:
        writer = SlowWriter()
        publisher = publisher_of(FakeBinder(), writer, AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for note in (
                PodConditionWrite(POD, "one"),
                PodConditionWrite(POD, "two", nominated="n2", event=False),
                PodConditionWrite(POD, "three"),
            ):
                publisher.publish(Turn(pod_conditions=[note]), group, list[facts.Fact]().append)
            await writer.begun.wait()
            writer.go.set()
        assert (writer.conditions, writer.nominated) == ({"p1": "three"}, {"p1": "n2"})

    asyncio.run(body())


class SlowBinder(FakeBinder):
    """Binds once it is let, one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Semaphore(0)

    async def bind(self, placement: Placement) -> None:
        await self.let.acquire()
        await super().bind(placement)


def lone(count: int) -> Turn:
    pods = [NamedObject("default", f"p{number}", f"u{number}") for number in range(count)]
    binds = [Bind(pod, Placement(pod.key, pod.uid, "n1"), 0.0) for pod in pods]
    return Turn(batches=[BindingBatch(WorkloadId.pod(bind.pod.key), False, (bind,)) for bind in binds])


def test_bindings_come_before_more_decisions() -> None:
    """Decided bindings are under way before more is decided, and Events wait for the last one."""

    async def body() -> None:
        binder = SlowBinder()
        publisher = publisher_of(binder, FakeWriter(), SchedulerSettings(concurrent_binds=2))
        async with asyncio.TaskGroup() as group:
            publisher.publish(lone(4), group, lambda fact: None)
            waiting = asyncio.create_task(publisher.bindings_first())
            for _ in range(2):
                await settled()
                assert (waiting.done(), publisher.binding) == (False, True)
                binder.let.release()
            await waiting
            assert len(binder.assigned) == 2
            binder.let.release()
            binder.let.release()
            await settled()
            assert not publisher.binding
            await publisher.bindings_first()

    asyncio.run(body())


def test_a_binding_that_hangs_holds_up_no_decision() -> None:
    async def body() -> None:
        binder = SlowBinder()
        publisher = publisher_of(binder, FakeWriter(), SchedulerSettings(concurrent_binds=1))
        async with asyncio.TaskGroup() as group:
            publisher.publish(lone(2), group, lambda fact: None)
            await publisher.bindings_first()
            assert binder.assigned == {}
            for _ in range(2):
                binder.let.release()

    asyncio.run(body())


def gang_of(size: int) -> BindingBatch:
    pods = [NamedObject("default", f"m{number}", f"v{number}") for number in range(size)]
    return BindingBatch(
        WorkloadId.gang("default/train"), True, tuple(Bind(pod, Placement(pod.key, pod.uid, "n1"), 0.0) for pod in pods)
    )


def test_a_stop_binds_what_was_begun_to_its_end() -> None:
    """The gang is whole, with its Events; the batch that no binding was asked for comes back."""

    async def body() -> None:
        binder, announcer, told = SlowBinder(), FakeAnnouncer(), list[facts.Fact]()
        outlets = Outlets(binder, FakeWriter(), FakeEvictor(), announcer)
        publisher = Publisher(outlets, FakeMeter(), FakeClock(), SchedulerSettings(concurrent_binds=1))
        async with asyncio.TaskGroup() as group:
            publisher.publish(Turn(batches=[gang_of(3), batch()]), group, told.append)
            await settled()
            draining = asyncio.create_task(publisher.drain())
            for _ in range(3):
                await settled()
                assert not draining.done()
                binder.let.release()
            with capture_logs() as logs:
                await draining
        assert binder.assigned == {"m0": "n1", "m1": "n1", "m2": "n1"}
        assert [event[:2] for event in announcer.events] == [("Scheduled", f"m{number}") for number in range(3)]
        released = facts.BindingReleased(WorkloadId.pod("default/p1"), "u1")
        assert set(told) == {
            released,
            facts.BatchDone(WorkloadId.pod("default/p1")),
            facts.BatchDone(WorkloadId.gang("default/train")),
        }
        assert logs == []

    dream(body())


def test_a_stop_does_not_wait_for_a_binding_that_hangs() -> None:
    """It ends within the bound, and one line says which pod may be bound yet and how many were not tried."""

    async def body() -> None:
        publisher = publisher_of(SlowBinder(), FakeWriter(), SchedulerSettings(concurrent_binds=1))
        loop = asyncio.get_running_loop()
        group = asyncio.TaskGroup()
        with contextlib.suppress(asyncio.CancelledError), capture_logs() as logs:
            async with group:
                publisher.publish(Turn(batches=[gang_of(3)]), group, lambda fact: None)
                await settled()
                began = loop.time()
                await publisher.drain()
                raise asyncio.CancelledError
        assert loop.time() - began == 5.0
        (line,) = logs
        assert (line["pods"], line["uncertain"], line["untried"]) == (["default/m0"], 1, 2)

    dream(body())


@pytest.mark.parametrize("fault", ["no answer", "refused"])
def test_a_stop_waits_until_a_failed_binding_is_certain(fault: str) -> None:
    """Without an answer it is made as it was, and the gang with it; after a refusal the rest comes back."""

    async def body() -> None:
        binder, told = FakeBinder(), list[facts.Fact]()
        binder.failures["m0"] = KubernetesFault("POST", fault, status=403 if fault == "refused" else 0)
        publisher = publisher_of(binder, FakeWriter(), SchedulerSettings(concurrent_binds=1))
        async with asyncio.TaskGroup() as group:
            publisher.publish(Turn(batches=[gang_of(2)]), group, told.append)
            while binder.failures:
                await asyncio.sleep(0)
            await publisher.drain()
            assert not publisher.binding
        assert len(binder.assigned) == (2 if fault == "no answer" else 0)
        assert len(told) == (1 if fault == "no answer" else 3)

    dream(body())


async def settled() -> None:
    """Whatever can go on without anybody's help has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


MARKED = GangStatusWrite(GANG, GangStatus(GangPhase.SCHEDULING), GangTimes(50.0))


def test_an_overtaken_mark_is_written_all_the_same() -> None:
    """The newer status says nothing of times, so the older one's stand."""
    writer = FakeWriter()
    publish(
        Turn(gang_statuses=[MARKED, GangStatusWrite(GANG, GangStatus(GangPhase.SCHEDULING, 1))]), FakeBinder(), writer
    )
    assert (writer.times, writer.statuses) == (
        {"train": [GangTimes(50.0)]},
        {"train": GangStatus(GangPhase.SCHEDULING, 1)},
    )


@pytest.mark.parametrize(("status", "written"), [(403, True), (422, True), (404, False), (409, False)])
def test_a_mark_that_is_refused_holds_up_no_status(status: int, written: bool) -> None:
    """But that of a PodGroup that is gone, or another by now."""
    writer = FakeWriter()
    writer.unmarkable = KubernetesFault("PATCH", "refused", status=status)
    publish(Turn(gang_statuses=[MARKED]), FakeBinder(), writer)
    assert bool(writer.statuses) is written


def test_no_status_is_written_before_its_mark() -> None:
    """Its phase would say less than the one before it, and a crash between the two would lose what the mark keeps."""

    async def body() -> None:
        writer = FakeWriter()
        writer.unmarkable = KubernetesFault("PATCH", "no answer")
        publisher = publisher_of(FakeBinder(), writer, SchedulerSettings())
        async with asyncio.TaskGroup() as group:
            publisher.publish(Turn(gang_statuses=[MARKED]), group, lambda fact: None)
            await asyncio.sleep(100)
            assert (writer.times, writer.statuses) == ({}, {})
            writer.unmarkable = None
        assert (list(writer.times), list(writer.statuses)) == (["train"], ["train"])

    dream(body())


def many_conditions(count: int = 100) -> Turn:
    """Of waiting pods of one namespace, which are all told something else at once."""
    pods = [NamedObject("crowd", f"w{number}", f"w{number}") for number in range(count)]
    return Turn(pod_conditions=[PodConditionWrite(pod, "waits") for pod in pods])


def test_an_eviction_waits_for_no_condition() -> None:
    """Whoever may make pods has thousands told at once; room for a service must not wait for that."""

    async def body() -> None:
        writer, evictor = SlowWriter(), FakeEvictor()
        outlets = Outlets(FakeBinder(), writer, evictor, FakeAnnouncer())
        publisher = Publisher(outlets, FakeMeter(), FakeClock(), SchedulerSettings())
        async with asyncio.TaskGroup() as group:
            publisher.publish(many_conditions(), group, lambda fact: None)
            await settled()
            publisher.publish(Turn(evictions=[Eviction(POD, "Preempted", "for a service", "")]), group, print)
            await settled()
            assert list(evictor.evicted) == ["p1"]
            writer.go.set()

    asyncio.run(body())


def test_evictions_for_one_wait_for_no_thousands_for_another() -> None:
    async def body() -> None:
        evictor = FakeEvictor()

        class Slow(FakeEvictor):
            async def evict(
                self, pod: NamedObject, reason: str, message: str, *, require_condition: bool = True
            ) -> None:
                await asyncio.sleep(0)
                await evictor.evict(pod, reason, message, require_condition=require_condition)

        outlets = Outlets(FakeBinder(), FakeWriter(), Slow(), FakeAnnouncer())
        publisher = Publisher(outlets, FakeMeter(), FakeClock(), SchedulerSettings())
        crowd = [NamedObject("crowd", f"w{number}", f"w{number}") for number in range(100)]
        async with asyncio.TaskGroup() as group:
            publisher.publish(Turn(evictions=[Eviction(pod, "P", "for a gang", "") for pod in crowd]), group, print)
            publisher.publish(Turn(evictions=[Eviction(POD, "P", "for a service", "")]), group, print)
        order = list(evictor.evicted)
        assert (len(order), order.index("p1") < 30) == (101, True)

    asyncio.run(body())


def test_a_binding_waits_for_no_condition_that_waits_for_its_turn() -> None:
    """Its own stands behind those of a crowd, and is dropped."""

    async def body() -> None:
        writer, binder = SlowWriter(), FakeBinder()
        publisher = publisher_of(binder, writer, SchedulerSettings())
        async with asyncio.TaskGroup() as group:
            publisher.publish(many_conditions(), group, lambda fact: None)
            await settled()
            publisher.publish(Turn(pod_conditions=[PodConditionWrite(POD, "waits, too")]), group, print)
            await settled()
            publisher.publish(Turn(batches=[batch()]), group, lambda fact: None)
            await settled()
            assert binder.assigned == {"p1": "n1"}
            writer.go.set()
        assert "p1" not in writer.conditions

    asyncio.run(body())


def test_bindings_of_a_large_gang_hold_up_nobody_else() -> None:
    """Namespaces have their turn one after the other."""

    async def body() -> None:
        order = list[str]()

        class Noting(FakeBinder):
            async def bind(self, placement: Placement) -> None:
                order.append(placement.pod_key)
                await asyncio.sleep(0)

        publisher = publisher_of(Noting(), FakeWriter(), SchedulerSettings(concurrent_binds=2))
        pods = [NamedObject("crowd", f"w{number}", f"w{number}") for number in range(100)]
        binds = tuple(Bind(pod, Placement(pod.key, pod.uid, "n1"), 0.0) for pod in pods)
        async with asyncio.TaskGroup() as group:
            gang = BindingBatch(WorkloadId.gang("crowd/gang"), True, binds)
            publisher.publish(Turn(batches=[gang]), group, lambda fact: None)
            await asyncio.sleep(0)
            publisher.publish(Turn(batches=[batch()]), group, lambda fact: None)
        assert (len(order), order.index("default/p1") < 10) == (101, True)

    asyncio.run(body())


def test_lanes_have_their_turn_one_after_the_other() -> None:
    """However many of one lane came before; in a lane who came first goes first."""

    async def body() -> list[str]:
        slots, done = FairSlots(1), list[str]()

        async def work(lane: str, name: str) -> None:
            async with slots.taken(lane):
                done.append(name)
                await asyncio.sleep(0)

        lanes = [("a", f"a{number}") for number in range(4)] + [("b", "b0"), ("b", "b1"), ("c", "c0")]
        await asyncio.gather(*(work(*each) for each in lanes))
        return done

    assert asyncio.run(body()) == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]


def test_no_more_at_once_than_there_are_slots() -> None:
    async def body() -> int:
        slots, inside, most = FairSlots(3), 0, 0

        async def work(lane: int) -> None:
            nonlocal inside, most
            async with slots.taken(lane):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(work(number % 4) for number in range(20)))
        return most

    assert asyncio.run(body()) == 3


def test_who_gives_up_waiting_takes_no_slot_with_him() -> None:
    """Cancelled while it waits, or at the moment in which it has its turn."""

    async def body() -> None:
        slots, go = FairSlots(1), asyncio.Event()

        async def work() -> None:
            async with slots.taken("a"):
                await go.wait()

        first, second, third = (asyncio.create_task(work()) for _ in range(3))
        await asyncio.sleep(0)
        second.cancel()
        go.set()
        await first
        third.cancel()
        await asyncio.gather(second, third, return_exceptions=True)
        async with asyncio.timeout(1), slots.taken("b"):
            pass

    asyncio.run(body())
