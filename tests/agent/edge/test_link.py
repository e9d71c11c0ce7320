"""The agent's end of the link over real TLS: hello first, reports on change, reconnecting, notices passed on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from agent.edge.link import STATUS_LOST, LinkAccess, LinkClient, advice
from local.certificates import LocalAuthority
from model.report import AgentHello, CheckpointSaved, NodeReport, PreemptionNotice, Usage
from wire.v1 import link_pb2, link_pb2_grpc

HELLO = AgentHello("n", "0.1", "boot")


class FakeScheduler(link_pb2_grpc.NodeLinkServicer):
    """Keeps what it is told; answers each message, and what the test put into `answers`."""

    def __init__(self) -> None:
        self.received: list[link_pb2.NodeMessage] = []
        self.tokens: list[str] = []
        self.news = asyncio.Event()
        self.hang_up_after: int | None = None

    async def Connect(self, messages: Any, context: Any) -> AsyncIterator[link_pb2.SchedulerMessage]:
        self.tokens.append(dict(context.invocation_metadata()).get("authorization", ""))
        count = 0
        async for message in messages:
            self.received.append(message)
            self.news.set()
            count += 1
            answer = link_pb2.SchedulerMessage(acknowledged_sequence=message.sequence)
            if message.HasField("report"):
                answer.costs.pods.append(link_pb2.EvictionCost(pod_uid="u", gang="ns/g", members_above_minimum=1))
            if message.HasField("checkpoint"):
                answer.preemption.CopyFrom(link_pb2.PreemptionNotice(pod_uid="u", deadline_seconds=9, reason="why"))
            yield answer
            if message.HasField("checkpoint"):
                yield link_pb2.SchedulerMessage(withdrawal=link_pb2.PreemptionWithdrawal(pod_uid="u"))
            if self.hang_up_after == count:
                return

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(20):
            while not condition(self.received):
                self.news.clear()
                await self.news.wait()


class Standby(link_pb2_grpc.NodeLinkServicer):
    """Sends everybody to `leader`."""

    def __init__(self, leader: str) -> None:
        self.leader = leader
        self.calls = 0

    async def Connect(self, messages: Any, context: Any) -> None:
        self.calls += 1
        await context.abort(grpc.StatusCode.UNAVAILABLE, "does not lead", (("sublet-leader", self.leader),))


class Rig:
    """One TLS server and one client with its files."""

    def __init__(self, folder: Path) -> None:
        authority = LocalAuthority("test")
        certificate, key = authority.issue("link")
        self.ca, self.token = folder / "ca.pem", folder / "token"
        self.ca.write_bytes(authority.certificate_pem)
        self.token.write_text("secret\n")
        self.credentials = grpc.ssl_server_credentials([(key, certificate)])
        self.scheduler = FakeScheduler()
        self.notices: list[PreemptionNotice] = []
        self.spared: list[str] = []
        self.server: Any = None
        self.address = "127.0.0.1:0"

    async def serve(self) -> None:
        self.server, self.address = await self.served(self.scheduler, self.address)

    async def served(self, servicer: Any, address: str = "127.0.0.1:0") -> tuple[Any, str]:
        server = grpc.aio.server()
        link_pb2_grpc.add_NodeLinkServicer_to_server(servicer, server)
        port = server.add_secure_port(address, self.credentials)
        await server.start()
        return server, f"{address.rpartition(':')[0]}:{port}"

    def client(self, **options: float) -> LinkClient:
        access = LinkAccess(self.address, self.ca, self.token)
        return LinkClient(access, HELLO, self.notices.append, self.spared.append, **options)


def result(build: Any, at: float, cpu: int = 0) -> Any:
    """What the link reads of a tick."""

    class Result:
        cuts = ()
        report = NodeReport(at, Usage(cpu, 1), Usage(), Usage(), Usage())

    return Result()


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_hello_report_costs_and_notice(rig: Rig, build: Any) -> None:
    """The token goes with the call, sequence numbers grow, costs and notices arrive."""

    async def scene() -> None:
        await rig.serve()
        link = rig.client()
        running = asyncio.create_task(link.run())
        link.take(result(build, 1.0, 500))
        await rig.scheduler.until(lambda got: len(got) >= 2)
        link.checkpoint(CheckpointSaved("ns", "p", "u", 5.0))
        await rig.scheduler.until(lambda got: len(got) >= 3)
        async with asyncio.timeout(20):
            while not rig.spared or link.acknowledged < 3:
                await asyncio.sleep(0.01)
        assert link.connected
        running.cancel()
        await rig.server.stop(0)
        got = rig.scheduler.received
        assert [m.WhichOneof("body") for m in got] == ["hello", "report", "checkpoint"]
        assert [m.sequence for m in got] == [1, 2, 3] and rig.scheduler.tokens == ["Bearer secret"]
        assert link.costs["u"].members_above_minimum == 1
        assert (rig.notices[0].reason, rig.spared) == ("why", ["u"])

    asyncio.run(scene())


def test_after_a_hang_up_it_reconnects_with_hello_and_the_newest_report(rig: Rig, build: Any) -> None:
    """A scheduler that restarts knows the node again at once."""

    async def scene() -> None:
        rig.scheduler.hang_up_after = 2
        await rig.serve()
        link = rig.client()
        running = asyncio.create_task(link.run())
        link.take(result(build, 1.0, 500))
        await rig.scheduler.until(lambda got: len(got) >= 4)
        running.cancel()
        await rig.server.stop(0)
        bodies = [m.WhichOneof("body") for m in rig.scheduler.received[:4]]
        assert bodies == ["hello", "report", "hello", "report"]
        assert rig.scheduler.received[3].report.node.cpu_millis == 500

    asyncio.run(scene())


def test_a_steady_link_that_was_ended_in_order_is_taken_up_at_once(rig: Rig) -> None:
    """Sixty times within a bound in which the rest between two attempts would let it happen fifty times at most."""

    async def scene() -> None:
        rig.scheduler.hang_up_after = 1
        await rig.serve()
        running = asyncio.create_task(rig.client(steady_seconds=-1.0).run())
        await rig.scheduler.until(lambda got: len(got) >= 60)
        running.cancel()
        await rig.server.stop(0)
        assert {message.WhichOneof("body") for message in rig.scheduler.received} == {"hello"}

    asyncio.run(scene())


def test_no_scheduler_and_no_token_file_are_waited_out(rig: Rig, build: Any) -> None:
    """Neither ends the agent; the link comes up once both are there."""

    async def scene() -> None:
        await rig.serve()
        await rig.server.stop(0)
        rig.token.unlink()
        link = rig.client()
        running = asyncio.create_task(link.run())
        link.take(result(build, 1.0))
        await asyncio.sleep(0.1)
        assert not link.connected and not running.done()
        rig.token.write_text("later")
        rig.server = None
        await rig.serve()
        await rig.scheduler.until(lambda got: len(got) >= 1)
        running.cancel()
        await rig.server.stop(0)
        assert rig.scheduler.tokens[0] == "Bearer later"

    asyncio.run(scene())


def test_nothing_is_lost_to_a_connection_that_ended(rig: Rig, build: Any) -> None:
    """Checkpoint reports made after hang-ups reach the next connection: the newest of each pod, once."""

    async def scene() -> None:
        rig.scheduler.hang_up_after = 1
        await rig.serve()
        link = rig.client()
        running = asyncio.create_task(link.run())
        await rig.scheduler.until(lambda got: len(got) >= 2)
        rig.scheduler.hang_up_after = None
        for uid, step in (("u", 1), ("v", 1), ("u", 2)):
            link.checkpoint(CheckpointSaved("ns", "p", uid, 5.0, step))
        await rig.scheduler.until(lambda got: sum(m.HasField("checkpoint") for m in got) >= 2)
        running.cancel()
        await rig.server.stop(0)
        told = [m.checkpoint for m in rig.scheduler.received if m.HasField("checkpoint")]
        assert [(each.pod_uid, each.step) for each in told] == [("v", 1), ("u", 2)]
        assert all(abs(each.sent_at_seconds - time.time()) < 60 for each in told)

    asyncio.run(scene())


def test_a_token_file_that_is_no_token_is_waited_out(rig: Rig) -> None:
    """Bytes that are not text end neither the link nor the agent."""

    async def scene() -> None:
        await rig.serve()
        rig.token.write_bytes(b"\xff\xfe\x00")
        running = asyncio.create_task(rig.client().run())
        await asyncio.sleep(0.1)
        assert not running.done()
        rig.token.write_text("mended")
        await rig.scheduler.until(lambda got: len(got) >= 1)
        running.cancel()
        await rig.server.stop(0)

    asyncio.run(scene())


def test_a_standby_sends_to_the_leader(rig: Rig, build: Any) -> None:
    """The leader's address is followed, and its certificate must be good for the address this agent was given.

    The certificate names 127.0.0.1 and not 127.0.0.2, so without that rule this link could not come up.
    """

    async def scene() -> None:
        leading, leader = await rig.served(rig.scheduler, "127.0.0.2:0")
        standby = Standby(leader)
        waiting, rig.address = await rig.served(standby)
        running = asyncio.create_task(rig.client().run())
        await rig.scheduler.until(lambda got: len(got) >= 1)
        running.cancel()
        await asyncio.gather(leading.stop(0), waiting.stop(0))
        assert standby.calls == 1

    asyncio.run(scene())


@pytest.mark.parametrize("leader", ["", "somewhere", "dns:///evil:1", "unix:/tmp/x:1", "a:1/b"])
def test_what_is_no_address_is_not_followed(rig: Rig, build: Any, leader: str) -> None:
    """The agent asks again where it was told to ask."""

    async def scene() -> None:
        standby = Standby(leader)
        waiting, rig.address = await rig.served(standby)
        running = asyncio.create_task(rig.client().run())
        async with asyncio.timeout(20):
            while standby.calls < 2:
                await asyncio.sleep(0.01)
        running.cancel()
        await waiting.stop(0)

    asyncio.run(scene())


def test_a_refusal_without_its_reason_says_that_the_next_attempt_has_it(tmp_path: Path) -> None:
    access = LinkAccess("s:1", tmp_path / "ca", tmp_path / "token")
    assert "next attempt" in advice(grpc.StatusCode.INTERNAL, STATUS_LOST, access)
    assert advice(grpc.StatusCode.INTERNAL, "anything else", access) == ""
