"""The link process over real TLS, as agents and the scheduling process see it."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from link_fakes import FakeDesk, hello, report

from kube.grpc_server import loopback_server
from model.fault import ConfigurationFault
from model.report import CheckpointSaved, EvictionCost, PreemptionNotice
from scheduler.edge.linkchild import LinkChild
from scheduler.link.frames import Serving
from wire import codec
from wire.v1 import link_pb2, link_pb2_grpc, scheduler_pb2, scheduler_pb2_grpc

METADATA = (("authorization", "Bearer secret"),)
LATER = 1e12


class Gangs(scheduler_pb2_grpc.SchedulerDiagnosticsServicer):
    """Diagnostics that know one gang and two decisions."""

    name = "sublet.v1.SchedulerDiagnostics"

    def register(self, server: Any) -> None:
        scheduler_pb2_grpc.add_SchedulerDiagnosticsServicer_to_server(self, server)

    async def ListGangs(self, request: Any, context: Any) -> Any:
        return scheduler_pb2.ListGangsResponse(gangs=[scheduler_pb2.Gang(name="train")])

    async def ExplainPod(self, request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.NOT_FOUND, f"pod {request.name} is not known")


class Rig:
    """A link process and a channel to it."""

    def __init__(self, child: LinkChild, address: str, channel: Any) -> None:
        self.child = child
        self.address = address
        self.node_reports = FakeDesk()
        self.first: Any = None
        self._channel = channel

    def call(self) -> Any:
        return link_pb2_grpc.NodeLinkStub(self._channel).Connect(metadata=METADATA, timeout=20)

    @property
    def diagnostics(self) -> Any:
        return scheduler_pb2_grpc.SchedulerDiagnosticsStub(self._channel)

    async def health(self) -> Any:
        stub = health_pb2_grpc.HealthStub(self._channel)
        return (await stub.Check(health_pb2.HealthCheckRequest(), timeout=20)).status

    async def linked(self) -> Any:
        """A stream of n1 that is taken, with its `first` message; a role that is on its way is waited for."""
        async with asyncio.timeout(20):
            while True:
                call = self.call()
                try:
                    await call.write(hello())
                    self.first = await call.read()
                    if self.first is not grpc.aio.EOF:
                        return call
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await asyncio.sleep(0.01)


async def holds(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def serving_of(folder: Path, certificate: Any, listen: str = "127.0.0.1:0") -> Serving:
    (folder / "tokens").write_text("secret,system:node:n1\n")
    files = (str(certificate.certificate), str(certificate.key), str(folder / "tokens"))
    return Serving(listen, *files, calls=64, costs_interval_seconds=0.02)


@asynccontextmanager
async def running(folder: Path, certificate: Any) -> AsyncIterator[Rig]:
    child = LinkChild(serving_of(folder, certificate))
    task = asyncio.create_task(child.run())
    address = await child.address()
    credentials = grpc.ssl_channel_credentials(certificate.certificate.read_bytes())
    try:
        async with grpc.aio.secure_channel(address, credentials) as channel:
            yield Rig(child, address, channel)
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
def play(tmp_path: Path, certificate: Any) -> Iterator[Callable[[Callable[[Rig], Awaitable[None]]], None]]:
    def run(working: Callable[[Rig], Awaitable[None]]) -> None:
        async def whole() -> None:
            async with asyncio.timeout(60), running(tmp_path, certificate) as rig:
                await working(rig)

        asyncio.run(whole())

    yield run


def children() -> list[int]:
    """Processes that this one started and that serve links."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == os.getpid() and "scheduler.link_process" in (entry / "cmdline").read_text():
                    found.append(int(entry.name))
            except (OSError, ValueError):
                continue
    return found


def test_the_folder_of_the_start_is_not_imported(
    tmp_path: Path, certificate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write there would else run their program as whoever starts the scheduler."""
    folder = tmp_path / "somebody-else's"
    (folder / "scheduler").mkdir(parents=True)
    for name in ("scheduler/__init__.py", "structlog.py"):
        (folder / name).write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(folder)

    async def working() -> None:
        async with asyncio.timeout(60), running(tmp_path, certificate) as rig:
            assert rig.child.restarts == 0

    asyncio.run(working())


def test_reports_go_up_and_costs_and_notices_come_down(play: Any) -> None:
    """Through the process and back, with the words of the node reports."""

    async def working(rig: Rig) -> None:
        rig.child.lead(rig.node_reports, "")
        call = await rig.linked()
        await call.write(report(2))
        await holds(lambda: bool(rig.node_reports.reports))
        assert rig.node_reports.links == ["+n1"] and rig.child.links == 1
        rig.child.notify("n1", PreemptionNotice("u1", LATER, "for another"))
        got = [rig.first]
        while not (any(m.HasField("preemption") for m in got) and any(m.costs.pods for m in got)):
            got.append(await call.read())
        assert [codec.cost_from_wire(c) for m in got for c in m.costs.pods] == [EvictionCost("u1", "default/train", 1)]
        assert [m.preemption.reason for m in got if m.HasField("preemption")] == ["for another"]
        rig.child.withdraw("n1", "u1")
        while not (message := await call.read()).HasField("withdrawal"):
            pass
        assert message.withdrawal.pod_uid == "u1"
        call.cancel()
        await holds(lambda: rig.node_reports.links == ["+n1", "-n1"])

    play(working)


def test_checkpoints_take_a_tenth_of_the_scheduler_at_most(play: Any) -> None:
    """Whoever tells of them without pause, and however long each takes: the newest of a pod waits meanwhile."""

    class Slow(FakeDesk):
        def __init__(self) -> None:
            super().__init__()
            self.batches = 0

        def checkpoints(self, told: Iterable[tuple[str, CheckpointSaved]]) -> None:
            time.sleep(0.03)
            self.batches += 1
            super().checkpoints(told)

    async def working(rig: Rig) -> None:
        rig.node_reports = desk = Slow()
        rig.child.lead(desk, "")
        call = await rig.linked()
        began, step = time.monotonic(), 1
        while time.monotonic() - began < 2.0:
            step += 1
            body = codec.checkpoint_to_wire(CheckpointSaved("d", "p", "u", time.time(), step), time.time())
            await call.write(link_pb2.NodeMessage(sequence=step, checkpoint=body))
            await asyncio.sleep(0.01)
        assert desk.batches <= 9  # each with its rest takes 0.3 s
        await holds(lambda: desk.saved[-1].step == step)

    play(working)


def test_a_standby_says_where_the_leader_is(play: Any) -> None:
    """UNAVAILABLE with the address, for links and diagnostics; health says NOT_SERVING until it leads."""

    async def working(rig: Rig) -> None:
        rig.child.stand_by("10.0.0.1:10318")
        hint: dict[str, str] = {}
        async with asyncio.timeout(20):
            while hint.get("sublet-leader") != "10.0.0.1:10318":
                call = rig.call()
                assert await call.code() is grpc.StatusCode.UNAVAILABLE
                hint = dict(await call.trailing_metadata())
        with pytest.raises(grpc.aio.AioRpcError, match="does not lead"):
            await rig.diagnostics.ListGangs(scheduler_pb2.ListGangsRequest(), metadata=METADATA, timeout=20)
        assert await rig.health() == health_pb2.HealthCheckResponse.NOT_SERVING
        rig.child.lead(rig.node_reports, "")
        await rig.linked()
        assert await rig.health() == health_pb2.HealthCheckResponse.SERVING

    play(working)


def test_stepping_down_closes_the_streams(play: Any) -> None:
    """The agents know at once, and the node reports have no links left."""

    async def working(rig: Rig) -> None:
        rig.child.lead(rig.node_reports, "")
        call = await rig.linked()
        await holds(lambda: rig.node_reports.links == ["+n1"])
        rig.child.stand_by("")
        assert rig.node_reports.links == ["+n1", "-n1"]
        assert await call.code() is grpc.StatusCode.UNAVAILABLE

    play(working)


def test_diagnostics_are_passed_on(play: Any) -> None:
    """Answers and refusals come from the scheduling process; without a token none does."""

    async def working(rig: Rig) -> None:
        inner = await loopback_server("127.0.0.1:0", (Gangs(),))
        await inner.start()
        rig.child.lead(rig.node_reports, inner.address)
        await rig.linked()
        found = await rig.diagnostics.ListGangs(scheduler_pb2.ListGangsRequest(), metadata=METADATA, timeout=20)
        assert [gang.name for gang in found.gangs] == ["train"]
        request = scheduler_pb2.ExplainPodRequest(name="p")
        with pytest.raises(grpc.aio.AioRpcError, match="pod p is not known") as error:
            await rig.diagnostics.ExplainPod(request, metadata=METADATA, timeout=20)
        assert error.value.code() is grpc.StatusCode.NOT_FOUND
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await rig.diagnostics.ExplainPod(request, timeout=20)
        assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
        await inner.stop(0)

    play(working)


def test_a_process_that_dies_is_started_again(play: Any) -> None:
    """On the same port, in the same role, with the notices that stand."""

    async def working(rig: Rig) -> None:
        rig.child.lead(rig.node_reports, "")
        rig.child.notify("n1", PreemptionNotice("u1", LATER, "for another"))
        await rig.linked()
        await holds(lambda: rig.node_reports.links == ["+n1"])
        (before,) = children()
        os.kill(before, signal.SIGKILL)
        await holds(lambda: rig.node_reports.links == ["+n1", "-n1"])
        again = await rig.linked()
        message = rig.first
        while not message.HasField("preemption"):
            message = await again.read()
        assert rig.child.restarts == 1 and await rig.child.address() == rig.address
        assert children() != [before]

    play(working)
    assert children() == []


def test_a_signal_to_the_whole_group_is_for_its_parent(play: Any) -> None:
    """Agents are told where to go before it ends; else a stop would look to them like a crash."""

    async def working(rig: Rig) -> None:
        rig.child.lead(rig.node_reports, "")
        call = await rig.linked()
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(children()[0], number)
        await call.write(report(2))
        await holds(lambda: bool(rig.node_reports.reports))
        assert rig.child.restarts == 0 and rig.node_reports.links == ["+n1"]

    play(working)
    assert children() == []


def test_no_room_for_a_process_is_waited_out(tmp_path: Path, certificate: Any) -> None:
    """The first attempt to start it fails as fork does on a full machine; the next one serves."""

    class Crowded(LinkChild):
        refused = False

        async def _start(self, descriptor: int) -> Any:
            if not self.refused:
                self.refused = True
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
            return await super()._start(descriptor)

    async def working() -> None:
        child = Crowded(serving_of(tmp_path, certificate))
        task = asyncio.create_task(child.run())
        async with asyncio.timeout(30):
            assert (await child.address()).startswith("127.0.0.1:")
        assert child.refused and child.restarts == 1
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(working())
    assert children() == []


def test_a_port_in_use_is_one_line(tmp_path: Path, certificate: Any) -> None:
    """The fault of the process is the fault of the scheduler, with the address and the fix."""

    async def working() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            await asyncio.wait_for(LinkChild(serving_of(tmp_path, certificate, address)).run(), 30)

    with pytest.raises(ConfigurationFault, match=r"127.0.0.1:\d+: cannot be listened on"):
        asyncio.run(working())
