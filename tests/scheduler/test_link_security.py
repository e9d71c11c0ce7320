"""The real agent's link against the real listener: who is refused is told on both sides, and nobody keeps others out."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import structlog
from link_fakes import REPORT, FakeDesk, hello
from reviews_fake import AUDIENCE, FakeCluster

from agent.edge.link import STATUS_LOST, LinkAccess, LinkClient
from kube.grpc_server import tls_server
from kube.tls import ServerCertificate, TlsFiles
from local.certificates import LocalAuthority
from model.report import AgentHello
from scheduler.edge.call_authorization import CallAuthorization
from scheduler.edge.link import NodeLinkServicer
from scheduler.link.callers import ReviewedCallers
from scheduler.link.stream import StreamLimits
from wire.v1 import link_pb2_grpc

TOKEN = "agent-n1-token"


class Tick:
    """What the link reads of a tick."""

    cuts = ()
    report = REPORT


class World:
    """A listener with reviewed callers, and the files of an agent on node n1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = LocalAuthority("test")
        self.cluster = FakeCluster()
        self.cluster.add_agent(TOKEN, "n1")
        self.node_reports = FakeDesk()
        self.address = ""
        self.node = "n1"
        (folder / "ca.crt").write_bytes(self.authority.certificate_pem)
        (folder / "token").write_text(TOKEN)
        self.write(*self.authority.issue("scheduler"))

    def write(self, certificate: bytes, key: bytes) -> None:
        (self.folder / "tls.crt").write_bytes(certificate)
        (self.folder / "tls.key").write_bytes(key)

    def agent(self) -> LinkClient:
        access = LinkAccess(self.address, self.folder / "ca.crt", self.folder / "token")
        link = LinkClient(access, AgentHello(self.node, "0.6.0", "boot"), lambda notice: None, lambda uid: None)
        tick: Any = Tick()
        link.take(tick)
        return link

    @asynccontextmanager
    async def serving(self, limits: StreamLimits = StreamLimits(costs_interval_seconds=0.02)) -> AsyncIterator[None]:  # noqa: B008
        client: Any = self.cluster
        callers = ReviewedCallers(client, AUDIENCE, "sublet-system:sublet-agent")
        servicer = NodeLinkServicer(self.node_reports, callers, asyncio.get_running_loop().time, limits)
        certificate = ServerCertificate(TlsFiles(self.folder / "tls.crt", self.folder / "tls.key"))
        listener = await tls_server("127.0.0.1:0", certificate, CallAuthorization(callers), (servicer,), 1000)
        servicer.lead()
        await listener.start()
        self.address = listener.address
        try:
            yield
        finally:
            await listener.stop(0)

    async def reported(self) -> None:
        while not self.node_reports.reports:
            await asyncio.sleep(0.01)


def wrong_token(world: World) -> None:
    (world.folder / "token").write_text("a-guess")


def wrong_audience(world: World) -> None:
    world.cluster.add_agent(TOKEN, "n1", "https://kubernetes.default.svc")


def another_node(world: World) -> None:
    world.node = "n2"


def another_account(world: World) -> None:
    world.cluster.add_person(TOKEN, "system:serviceaccount:default:default")


def expired(world: World) -> None:
    long_ago = LocalAuthority("test", datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=400))
    (world.folder / "ca.crt").write_bytes(long_ago.certificate_pem)
    world.write(*long_ago.issue("scheduler"))


def another_authority(world: World) -> None:
    (world.folder / "ca.crt").write_bytes(LocalAuthority("other").certificate_pem)


def another_host(world: World) -> None:
    world.write(*world.authority.issue("scheduler", ("elsewhere.example",)))


def api_down(world: World) -> None:
    world.cluster.down = True


def oversized(world: World) -> None:
    world.node = "n" * (5 << 20)


# what is wrong → code and detail in the agent's log, what it says to do, and the scheduler's line where it has one
CASES: dict[str, tuple[Callable[[World], None], str, str, str, str]] = {
    "wrong token": (wrong_token, "UNAUTHENTICATED", "with a known token", "check its volume", "call refused"),
    "wrong audience": (wrong_audience, "UNAUTHENTICATED", "with a known token", "another audience", "call refused"),
    "another node's token": (
        another_node, "PERMISSION_DENIED", "the token is bound to node n1 and cannot speak for node n2",
        "not that of this node's agent", "link refused",
    ),
    "another account": (
        another_account, "PERMISSION_DENIED", "system:serviceaccount:default:default, which is no node's agent",
        "check service account", "link refused",
    ),
    "expired certificate": (expired, "UNAVAILABLE", "certificate has expired", "sublet admission", ""),
    "another authority": (another_authority, "UNAVAILABLE", "CERTIFICATE_VERIFY_FAILED", "ca.crt must hold", ""),
    "another host's certificate": (another_host, "UNAVAILABLE", "", "which must name 127.0.0.1", ""),
    "API server down": (
        api_down, "UNAVAILABLE", "the API server cannot be asked who you are; try again", "", "call refused",
    ),
    "oversized message": (oversized, "RESOURCE_EXHAUSTED", "larger than max", "a message above 1 MiB", ""),
}  # fmt: skip


def lost(logs: list[Any]) -> list[Any]:
    """Without refusals that overtook hello, of which gRPC keeps no reason: about one of 200."""
    return [line for line in logs if line["event"] == "link lost" and line["detail"] != STATUS_LOST]


@pytest.mark.parametrize("name", CASES)
def test_both_sides_say_what_is_wrong(tmp_path: Path, name: str) -> None:
    """The agent with a fix, the scheduler with the peer; the agent lives on, and no token is in either's log."""
    spoil, code, detail, fix, event = CASES[name]
    world = World(tmp_path)
    spoil(world)

    async def working(logs: list[Any]) -> None:
        async with asyncio.timeout(60), world.serving():
            running = asyncio.create_task(world.agent().run())
            while not lost(logs):
                await asyncio.sleep(0.01)
            assert not running.done() and world.node_reports.links == []
            running.cancel()

    with structlog.testing.capture_logs() as logs:
        asyncio.run(working(logs))
    told = lost(logs)[0]
    assert (told["code"], detail in told["detail"], fix in told["fix"]) == (code, True, True), told
    assert bool(told["fix"]) == bool(fix)
    assert [line["event"] for line in logs if line["event"].endswith("refused")][:1] == ([event] if event else [])
    assert TOKEN not in str(logs) and "a-guess" not in str(logs)


def test_a_pod_that_cannot_be_read_is_waited_out(tmp_path: Path) -> None:
    """The token is known, its node is not: refused for now, and taken once the API server answers."""
    world = World(tmp_path)
    world.cluster.add_older_agent(TOKEN, "sublet-agent-x", "u1")
    world.cluster.unreadable.add("sublet-agent-x")
    world.cluster.pods["sublet-agent-x"] = ("u1", "n1")

    async def working(logs: list[Any]) -> None:
        async with asyncio.timeout(60), world.serving():
            running = asyncio.create_task(world.agent().run())
            while not lost(logs):
                await asyncio.sleep(0.01)
            world.cluster.unreadable.clear()
            await world.reported()
            running.cancel()

    with structlog.testing.capture_logs() as logs:
        asyncio.run(working(logs))
    (refused,) = [line for line in logs if line["event"] == "link refused"]
    assert (refused["code"], "pods/sublet-agent-x" in refused["error"]) == ("UNAVAILABLE", True)


def test_what_was_wrong_can_be_mended_without_a_restart(tmp_path: Path) -> None:
    """New certificate, authority and token are read at the next attempt, on both sides."""
    world = World(tmp_path)
    expired(world)
    wrong_token(world)

    async def working(logs: list[Any]) -> None:
        async with asyncio.timeout(60), world.serving():
            running = asyncio.create_task(world.agent().run())
            while not logs:
                await asyncio.sleep(0.01)
            world.write(*world.authority.issue("scheduler"))
            (world.folder / "ca.crt").write_bytes(world.authority.certificate_pem)
            (world.folder / "token").write_text(TOKEN)
            await world.reported()
            running.cancel()

    with structlog.testing.capture_logs() as logs:
        asyncio.run(working(logs))


def test_an_older_api_server_knows_the_pod(tmp_path: Path) -> None:
    """Its tokens name no node; the pod they are bound to does."""
    world = World(tmp_path)
    world.cluster.add_older_agent(TOKEN, "sublet-agent-x", "u1")
    world.cluster.pods["sublet-agent-x"] = ("u1", "n1")

    async def working() -> None:
        async with asyncio.timeout(60), world.serving():
            running = asyncio.create_task(world.agent().run())
            await world.reported()
            running.cancel()

    asyncio.run(working())
    assert world.node_reports.reports == [("n1", REPORT)]
    assert "GET /api/v1/namespaces/sublet-system/pods/sublet-agent-x" in world.cluster.asked


class PodIndex:
    """Connections and streams that want to keep others out."""

    def __init__(self, world: World, stack: contextlib.AsyncExitStack) -> None:
        self._world = world
        self._stack = stack
        host, _, port = world.address.rpartition(":")
        self._where = (host, int(port))

    async def half_open(self) -> None:
        """TCP, and not a byte of TLS."""
        _, writer = await asyncio.open_connection(*self._where)
        self._stack.callback(writer.close)

    async def silent(self) -> None:
        """A token of an agent's node, and no hello."""
        await self._open("agent-n9-token")

    async def guessing(self) -> None:
        await self._open("guess")

    async def unheard(self) -> None:
        """An agent that says hello and reads nothing."""
        call = await self._open("agent-n9-token")
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await call.write(hello("n9"))

    async def _open(self, token: str) -> Any:
        credentials = grpc.ssl_channel_credentials(self._world.authority.certificate_pem)
        options = (("grpc.use_local_subchannel_pool", 1),)
        channel = grpc.aio.secure_channel(self._world.address, credentials, options=options)
        self._stack.push_async_callback(channel.close)
        return link_pb2_grpc.NodeLinkStub(channel).Connect(metadata=(("authorization", f"Bearer {token}"),))


@pytest.mark.parametrize("kind", [PodIndex.half_open, PodIndex.silent, PodIndex.guessing, PodIndex.unheard])
def test_200_slow_peers_keep_no_agent_out(tmp_path: Path, kind: Callable[[PodIndex], Awaitable[Any]]) -> None:
    """Its report arrives while all of them hang on, each on a connection of its own."""
    world = World(tmp_path)
    world.cluster.add_agent("agent-n9-token", "n9")

    async def working() -> None:
        async with asyncio.timeout(100), world.serving(), contextlib.AsyncExitStack() as stack:
            pod_index = PodIndex(world, stack)
            await asyncio.gather(*(kind(pod_index) for _ in range(200)))
            running = asyncio.create_task(world.agent().run())
            await world.reported()
            running.cancel()

    with structlog.testing.capture_logs():
        asyncio.run(working())
    assert ("n1", REPORT) in world.node_reports.reports
