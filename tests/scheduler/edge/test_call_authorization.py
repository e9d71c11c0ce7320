"""Who gets in over TLS: tokens that are reviewed, methods that are granted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from reviews_fake import AUDIENCE, FakeCluster

from kube.grpc_server import tls_server
from kube.tls import ServerCertificate, TlsFiles
from local.certificates import LocalAuthority
from scheduler.edge import call_authorization
from scheduler.edge.call_authorization import CallAuthorization
from scheduler.link.callers import ReviewedCallers
from wire.v1 import scheduler_pb2, scheduler_pb2_grpc

LIST = "/sublet.v1.SchedulerDiagnostics/ListGangs"
TOKENS = ("lister-token", "other-token", "elsewhere-token", "unknown-token")


class Gangs(scheduler_pb2_grpc.SchedulerDiagnosticsServicer):
    """Knows one gang."""

    name = "sublet.v1.SchedulerDiagnostics"

    def register(self, server: Any) -> None:
        scheduler_pb2_grpc.add_SchedulerDiagnosticsServicer_to_server(self, server)

    async def ListGangs(self, request: Any, context: Any) -> Any:
        return scheduler_pb2.ListGangsResponse(gangs=[scheduler_pb2.Gang(name="train")])


class Served:
    """A listener, its cluster, and channels to it."""

    def __init__(self, address: str, cluster: FakeCluster, files: TlsFiles) -> None:
        self.address = address
        self.cluster = cluster
        self.files = files

    def channel(self, authority: LocalAuthority) -> Any:
        credentials = grpc.ssl_channel_credentials(authority.certificate_pem)
        return grpc.aio.secure_channel(self.address, credentials, options=(("grpc.use_local_subchannel_pool", 1),))


def write(files: TlsFiles, authority: LocalAuthority) -> None:
    certificate, key = authority.issue("scheduler")
    files.certificate.write_bytes(certificate)
    files.key.write_bytes(key)


@asynccontextmanager
async def serving(folder: Path, authority: LocalAuthority) -> AsyncIterator[Served]:
    cluster: Any = FakeCluster()
    cluster.add_person("lister-token", "ann", LIST)
    cluster.add_person("other-token", "bob", "/sublet.v1.SchedulerDiagnostics/ListNodes")
    cluster.tokens["elsewhere-token"] = ({"username": "ann"}, "https://kubernetes.default.svc")
    files = TlsFiles(folder / "tls.crt", folder / "tls.key")
    write(files, authority)
    callers = ReviewedCallers(cluster, AUDIENCE, "sublet-system:sublet-agent")
    listener = await tls_server("127.0.0.1:0", ServerCertificate(files), CallAuthorization(callers), (Gangs(),), 64)
    await listener.start()
    try:
        yield Served(listener.address, cluster, files)
    finally:
        await listener.stop(0)


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Callable[[Served, LocalAuthority], Awaitable[None]]], None]:
    def run(working: Callable[[Served, LocalAuthority], Awaitable[None]]) -> None:
        async def whole() -> None:
            authority = LocalAuthority("test")
            async with asyncio.timeout(60), serving(tmp_path, authority) as served:
                await working(served, authority)

        asyncio.run(whole())

    return run


async def gangs(channel: Any, token: str | None) -> Any:
    metadata = () if token is None else (("authorization", f"Bearer {token}"),)
    stub = scheduler_pb2_grpc.SchedulerDiagnosticsStub(channel)
    return await stub.ListGangs(scheduler_pb2.ListGangsRequest(), metadata=metadata, timeout=20)


@pytest.mark.parametrize(
    ("token", "code", "told"),
    [
        (None, grpc.StatusCode.UNAUTHENTICATED, "send metadata `authorization: Bearer TOKEN` with a known token"),
        ("unknown-token", grpc.StatusCode.UNAUTHENTICATED, "with a known token"),
        ("elsewhere-token", grpc.StatusCode.UNAUTHENTICATED, "with a known token"),
        ("other-token", grpc.StatusCode.PERMISSION_DENIED, f"bob may not call {LIST}; bind it to ClusterRole sublet-viewer"),
    ],
)  # fmt: skip
def test_who_may_not_is_told_why(play: Any, token: str | None, code: grpc.StatusCode, told: str) -> None:
    """No token, an unknown one, one for another audience, one without the right: to the caller and to our log."""

    async def working(served: Served, authority: LocalAuthority) -> None:
        async with served.channel(authority) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await gangs(channel, token)
        assert error.value.code() is code and told in (error.value.details() or "")

    with structlog.testing.capture_logs() as logs:
        play(working)
    (line,) = [line for line in logs if line["event"] == "call refused"]
    assert (line["code"], told in line["told"]) == (code.name, True) and line["peer"].startswith("ipv4:127.0.0.1:")
    assert not [given for given in TOKENS if given in str(logs)]


def test_who_may_is_answered_and_asked_about_once(play: Any) -> None:
    """The API server hears of a token and a right once a minute, not at each call."""

    async def working(served: Served, authority: LocalAuthority) -> None:
        async with served.channel(authority) as channel:
            for _ in range(3):
                assert [gang.name for gang in (await gangs(channel, "lister-token")).gangs] == ["train"]
        assert served.cluster.asked == ["POST tokenreviews", "POST subjectaccessreviews"]

    play(working)


def test_without_the_api_server_nobody_new_gets_in(play: Any) -> None:
    """UNAVAILABLE, so that clients try again; whom we know stays known for the rest of its minute."""

    async def working(served: Served, authority: LocalAuthority) -> None:
        async with served.channel(authority) as channel:
            await gangs(channel, "lister-token")
            served.cluster.down = True
            await gangs(channel, "lister-token")
            with pytest.raises(grpc.aio.AioRpcError, match="cannot be asked who you are") as error:
                await gangs(channel, "other-token")
            assert error.value.code() is grpc.StatusCode.UNAVAILABLE

    play(working)


@pytest.mark.parametrize(("method", "code"), [
    (LIST, grpc.StatusCode.UNAUTHENTICATED),
    ("/grpc.health.v1.Health/Watch", grpc.StatusCode.UNAUTHENTICATED),
    ("/grpc.health.v1.Health/Check", grpc.StatusCode.DEADLINE_EXCEEDED),
])  # fmt: skip
def test_who_says_nothing_holds_no_call(play: Any, method: str, code: grpc.StatusCode) -> None:
    """More calls than are served at once, from nobody we know and without a message: each ends by itself."""

    async def working(served: Served, authority: LocalAuthority) -> None:
        async with contextlib.AsyncExitStack() as stack:
            channels = [await stack.enter_async_context(served.channel(authority)) for _ in range(5)]
            mute = [channel.stream_unary(method)() for channel in channels for _ in range(14)]
            ended = {await call.code() for call in mute}
            assert code in ended and ended <= {code, grpc.StatusCode.RESOURCE_EXHAUSTED}
            assert (await gangs(channels[0], "lister-token")).gangs

    with structlog.testing.capture_logs():
        play(working)


def test_health_is_open_and_reflection_for_those_we_know(play: Any) -> None:
    """A probe has no token; what methods there are is told to anybody who has one."""

    async def working(served: Served, authority: LocalAuthority) -> None:
        async with served.channel(authority) as channel:
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
            reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
            for token, code in (("other-token", grpc.StatusCode.OK), ("x", grpc.StatusCode.UNAUTHENTICATED)):
                asking = reflection.ServerReflectionInfo(
                    iter([reflection_pb2.ServerReflectionRequest(list_services="")]),
                    metadata=(("authorization", f"Bearer {token}"),),
                    timeout=20,
                )
                answers = aiter(asking)
                if code is grpc.StatusCode.OK:
                    found = (await anext(answers)).list_services_response.service
                    assert "sublet.v1.SchedulerDiagnostics" in [service.name for service in found]
                else:
                    with pytest.raises(grpc.aio.AioRpcError) as error:
                        await anext(answers)
                    assert error.value.code() is code

    play(working)


def test_reflection_holds_no_call_for_long(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any account's token opens it, and agents have no link while all calls are open."""
    monkeypatch.setattr(call_authorization, "_REFLECTION_SECONDS", 0.3, raising=False)

    async def working(served: Served, authority: LocalAuthority) -> None:
        async with served.channel(authority) as channel:
            asking = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
                metadata=(("authorization", "Bearer other-token"),)
            )
            await asking.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            assert (await asking.read()).list_services_response.service
            async with asyncio.timeout(5):
                assert await asking.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert (await gangs(channel, "lister-token")).gangs

    play(working)
