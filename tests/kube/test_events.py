"""Events are counted when they repeat, cut when they are long, never hold anybody up, and none is lost in a burst."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from kube.client import KubeClient, PatchKind
from kube.events import EventCapacity, EventRecorder, ObjectRef
from model.fault import KubernetesFault

POD = ObjectRef(kind="Pod", name="p", namespace="ns", uid="u")
BURST = 10_000


def record(server: Any, answers: list[Any], *events: tuple[ObjectRef, str, str]) -> list[Any]:
    """Each is recorded once the one before is posted."""

    async def scene() -> None:
        client = await server.start()
        server.answers = answers
        recorder = EventRecorder(client, "sublet-test", "host")
        running = asyncio.create_task(recorder.run())
        for about, reason, message in events:
            recorder.record(about, reason, message, warning=True)
            await recorder.flush(20)
        running.cancel()
        await client.close()
        await server.stop()

    asyncio.run(scene())
    return list(server.requests)


def test_a_repeated_event_is_counted(server: Any, says_: Any) -> None:
    """One POST, then PATCHes of count."""
    requests = record(server, [says_({})], *[(POD, "FailedScheduling", "no room")] * 3, (POD, "Other", "x"))
    assert [r[0] for r in requests] == ["POST", "PATCH", "PATCH", "POST"]
    body = requests[0][3]
    assert body["involvedObject"] == {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "ns", "uid": "u"}
    assert (body["reason"], body["type"], body["count"]) == ("FailedScheduling", "Warning", 1)
    assert requests[2][3]["count"] == 3


def test_an_expired_event_is_posted_again(server: Any, says_: Any) -> None:
    """The server forgets events after an hour."""
    answers = [says_({}), says_({"message": "gone"}, 404), says_({})]
    requests = record(server, answers, (POD, "R", "m"), (POD, "R", "m"))
    assert [r[0] for r in requests] == ["POST", "PATCH", "POST"]


def test_cluster_scoped_and_long(server: Any, says_: Any) -> None:
    """Namespace default for nodes; 1,024 characters at most; a refusal loses only itself."""
    node = ObjectRef(kind="Node", name="n")
    requests = record(server, [says_({"message": "no"}, 403), says_({})], (node, "R", "x"), (node, "R", "y" * 3000))
    assert requests[1][1] == "/api/v1/namespaces/default/events"
    assert len(requests[1][3]["message"]) == 1024 and requests[1][3]["message"].endswith(" ...")


class Sink(KubeClient):
    """An API server that answers each request a moment later; it stores Events as a server does.

    `faults` are raised by the next requests, one each; those in `late` store the Event all the same. A `closed` sink
    answers nobody until `opened` is set.
    """

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.order: list[str] = []
        self.faults: list[KubernetesFault] = []
        self.late = 0
        self.under_way = self.most_under_way = 0
        self.opened = asyncio.Event()
        self.opened.set()

    async def create(self, path: str, body: Any) -> bytes:
        async def store() -> None:
            if body["metadata"]["name"] in self.stored:
                raise KubernetesFault(path, "409 AlreadyExists", status=409)
            self.stored[body["metadata"]["name"]] = dict(body)
            self.order.append(body["involvedObject"]["name"])

        return await self._answered(store)

    async def patch(self, path: str, body: Any, kind: PatchKind = PatchKind.MERGE) -> bytes:
        async def store() -> None:
            self.stored[path.rpartition("/")[2]].update(body)

        return await self._answered(store)

    async def _answered(self, store: Callable[[], Awaitable[None]]) -> bytes:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.opened.wait()
            await asyncio.sleep(0)
            if self.faults:
                if self.late:
                    self.late -= 1
                    await store()
                raise self.faults.pop(0)
            await store()
        finally:
            self.under_way -= 1
        return b"{}"

    def counts(self) -> dict[str, int]:
        """How often each object's Events happened, by what is stored."""
        found: dict[str, int] = {}
        for stored in self.stored.values():
            name = stored["involvedObject"]["name"]
            found[name] = found.get(name, 0) + stored["count"]
        return found


class Scene:
    """A recorder that runs in front of a sink."""

    def __init__(self, **capacity: int) -> None:
        self.sink = Sink()
        room = msgspec.structs.replace(EventCapacity(waiting=BURST, posts=8), **capacity)
        self.recorder = EventRecorder(self.sink, "sublet-test", "host", capacity=room)

    async def __aenter__(self) -> Scene:
        self._running = asyncio.create_task(self.recorder.run())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])

    def tell(self, *names: str) -> None:
        """A name that begins with `w` is a warning."""
        for name in names:
            about = msgspec.structs.replace(POD, name=name)
            self.recorder.record(about, "R", f"about {name}", warning=name.startswith("w"))


def test_a_burst_loses_nothing() -> None:
    """10,000 Events at once, several posts under way; the flush at the stop waits for the last one."""

    async def scene() -> None:
        async with Scene() as it:
            names = [f"n{number}" for number in range(BURST)]
            it.tell(*names)
            await it.recorder.flush(60)
            assert it.sink.counts() == dict.fromkeys(names, 1)
            assert (it.recorder.dropped, it.sink.most_under_way) == (0, 8)

    asyncio.run(scene())


def test_warnings_overtake() -> None:
    """What is under way stays so, then come all warnings."""

    async def scene() -> None:
        async with Scene(posts=2) as it:
            it.sink.opened.clear()
            it.tell("n1", "n2", "n3", "w1", "n4", "w2")
            it.sink.opened.set()
            await it.recorder.flush(20)
            assert it.sink.order == ["n1", "n2", "w1", "w2", "n3", "n4"]

    asyncio.run(scene())


def test_a_full_room_says_so_once() -> None:
    async def scene() -> None:
        with capture_logs() as logs:
            async with Scene(waiting=3, posts=1) as it:
                it.sink.opened.clear()
                it.tell("n0", *(f"n{number}" for number in range(1, 10)), "w1")
                it.sink.opened.set()
                await it.recorder.flush(20)
                assert it.sink.order == ["n0", "w1", "n8", "n9"]
                assert it.recorder.dropped == 7
        assert [line["event"] for line in logs] == ["events are dropped, ordinary ones first"]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("faults", "late", "counts", "dropped"),
    [
        pytest.param([KubernetesFault("x", "no answer")], 0, {"n1": 2, "n2": 1}, 0, id="no answer"),
        pytest.param([KubernetesFault("x", "no answer")], 1, {"n1": 2, "n2": 1}, 0, id="an answer lost after the post"),
        pytest.param([KubernetesFault("x", "503", status=503)], 0, {"n1": 2, "n2": 1}, 0, id="overloaded"),
        pytest.param([KubernetesFault("x", "429", status=429)], 0, {"n1": 2, "n2": 1}, 0, id="too many requests"),
        pytest.param([KubernetesFault("x", "403", status=403)], 0, {"n1": 1, "n2": 1}, 1, id="refused"),
        pytest.param([KubernetesFault("x", "500", status=500)] * 99, 0, {}, 3, id="an error for ever"),
    ],
)
def test_faults(faults: list[KubernetesFault], late: int, counts: dict[str, int], dropped: int) -> None:
    """A fault of the moment loses nothing and counts nothing twice; what the server does not want is given up."""

    async def scene() -> None:
        async with Scene(posts=1) as it:
            it.sink.faults, it.sink.late = list(faults), late
            it.tell("n1", "n2")
            await asyncio.sleep(0)
            it.tell("n1")
            while it.sink.faults and not it.recorder.dropped:
                await it.recorder.flush(0.01) if len(faults) > 1 else await asyncio.sleep(0.01)
            await it.recorder.flush(20)
            assert (it.sink.counts(), it.recorder.dropped) == (counts, dropped)

    asyncio.run(scene())


def test_an_event_has_the_time_of_what_it_tells() -> None:
    """Of the attempt it reports, first and last, and not of the moment at which the server took it."""
    times = iter(f"2027-01-15T08:00:{second:02}" for second in range(60))

    async def scene() -> None:
        sink, pod = Sink(), msgspec.structs.replace(POD, name="w1")
        recorder = EventRecorder(sink, "sublet-test", "host", lambda: datetime.fromisoformat(next(times)))
        for _ in range(3):
            recorder.record(pod, "FailedScheduling", "no room", warning=True)
        running = asyncio.create_task(recorder.run())
        await recorder.flush(20)
        running.cancel()
        (event,) = sink.stored.values()
        assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2027-01-15T08:00:00Z", "2027-01-15T08:00:02Z")
        assert event["count"] == 3

    asyncio.run(scene())


def test_an_outage_is_waited_for() -> None:
    """However long nobody answers, Events that have room are posted afterwards."""

    async def scene() -> None:
        async with Scene(posts=2) as it:
            it.sink.faults = [KubernetesFault("x", "no answer")] * 6
            it.tell("n1", "n2", "n3")
            while it.sink.faults:
                await asyncio.sleep(0.01)
            await it.recorder.flush(20)
            assert it.sink.counts() == {"n1": 1, "n2": 1, "n3": 1}

    asyncio.run(scene())


@pytest.mark.parametrize("hangs", [True, False], ids=["a server that hangs", "a server that is gone"])
def test_a_stop_is_bounded(hangs: bool) -> None:
    """A server that hangs is waited for as long as was asked, one that is gone not even so long; one line says so."""

    async def scene() -> None:
        with capture_logs() as logs:
            async with Scene(posts=2) as it:
                if hangs:
                    it.sink.opened.clear()
                else:
                    it.sink.faults = [KubernetesFault("x", "no answer")] * 99
                it.tell("n1", "n2", "n3")
                await it.recorder.flush(0.05 if hangs else 20)
        assert logs[-1]["event"] == "events not posted before the stop" and logs[-1]["events"] == 3

    asyncio.run(scene())


def test_many_ordinary_events_do_not_forget_those_that_repeat() -> None:
    """Of those posted the longest unused is forgotten first."""

    async def scene() -> None:
        async with Scene(posts=1, remembered=2) as it:
            for name in ("w1", "n1", "w1", "n2", "w1", "n3", "w1"):
                it.tell(name)
                await it.recorder.flush(20)
            assert it.sink.counts() == {"w1": 4, "n1": 1, "n2": 1, "n3": 1}
            assert len(it.sink.stored) == 4

    asyncio.run(scene())


def test_events_give_way() -> None:
    """One at a time while more urgent writes are under way; all posters once they are over, or half the room is taken."""

    async def scene() -> None:
        async with Scene(waiting=8, posts=4) as it:
            urgent = True
            it.recorder.give_way = lambda: urgent
            it.sink.opened.clear()
            it.tell("n1", "n2", "n3", "n4", "n5")
            await asyncio.sleep(0)
            assert it.sink.under_way == 1
            it.tell("n6")
            await asyncio.sleep(0)
            assert it.sink.under_way == 2
            urgent = False
            it.tell("n7")
            await asyncio.sleep(0)
            assert it.sink.under_way == 4
            it.sink.opened.set()
            await it.recorder.flush(20)
            assert len(it.sink.stored) == 7

    asyncio.run(scene())


def test_a_flush_gives_way_to_nothing() -> None:
    """What was urgent is cut off at a stop and never over."""

    async def scene() -> None:
        async with Scene(posts=4) as it:
            it.recorder.give_way = lambda: True
            it.tell("n1", "n2", "n3", "n4", "n5")
            await it.recorder.flush(20)
            assert (len(it.sink.stored), it.sink.most_under_way) == (5, 4)

    asyncio.run(scene())
