"""gRPC servers on loopback, on a socket and over TLS: bounded, with health and reflection, for whom they are meant."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from kube.grpc_server import MESSAGE_LIMIT_BYTES, Listener, is_loopback, loopback_server, socket_server, tls_server
from kube.tls import ServerCertificate, TlsFiles
from local.certificates import LocalAuthority
from model.fault import CannotListen, ConfigurationFault
from wire.v1 import scheduler_pb2, scheduler_pb2_grpc

NAME = "sublet.v1.SchedulerDiagnostics"
KINDS = ("loopback", "socket", "tls")
LOCAL = (("grpc.use_local_subchannel_pool", 1),)
Work = Callable[[Any, Listener], Awaitable[None]]


class Questions(scheduler_pb2_grpc.SchedulerDiagnosticsServicer):
    """Knows one gang of the name that it is asked with, or of as many bytes; a watch never ends."""

    name = NAME

    def register(self, server: Any) -> None:
        scheduler_pb2_grpc.add_SchedulerDiagnosticsServicer_to_server(self, server)

    async def ExplainGang(self, request: Any, context: Any) -> Any:
        name = "g" * int(request.name) if request.name.isdecimal() else request.name
        return scheduler_pb2.ExplainGangResponse(gang=scheduler_pb2.Gang(name=name))

    async def WatchDecisions(self, request: Any, context: Any) -> AsyncIterator[Any]:
        await context.send_initial_metadata(())
        await asyncio.Event().wait()
        yield


class OpenToAll(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Lets everybody in, and counts."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        self.methods.append(details.method)
        return await continuation(details)


def write(files: TlsFiles, authority: LocalAuthority) -> None:
    certificate, key = authority.issue("scheduler")
    files.certificate.write_bytes(certificate)
    files.key.write_bytes(key)


class Kind:
    """One kind of server, and channels to it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.authority = LocalAuthority("test")
        self.files = TlsFiles(folder / "tls.crt", folder / "tls.key")
        self.authorization = OpenToAll()

    async def server(self, calls: int) -> Listener:
        servicers = (Questions(),)
        if self.name == "loopback":
            return await loopback_server("127.0.0.1:0", servicers, calls)
        if self.name == "socket":
            return await socket_server(self.folder / "s", servicers, calls)
        write(self.files, self.authority)
        return await tls_server("127.0.0.1:0", ServerCertificate(self.files), self.authorization, servicers, calls)

    def channel(self, address: str, authority: LocalAuthority | None = None) -> Any:
        if self.name != "tls":
            return grpc.aio.insecure_channel(address, options=LOCAL)
        trusted = grpc.ssl_channel_credentials((authority or self.authority).certificate_pem)
        return grpc.aio.secure_channel(address, trusted, options=LOCAL)

    @asynccontextmanager
    async def served(self, calls: int) -> AsyncIterator[Listener]:
        listener = await self.server(calls)
        await listener.start()
        try:
            yield listener
        finally:
            await listener.stop(0)

    def play(self, working: Work, calls: int = 8) -> None:
        async def whole() -> None:
            async with (
                asyncio.timeout(60),
                self.served(calls) as listener,
                self.channel(listener.address) as channel,
            ):
                await working(channel, listener)

        asyncio.run(whole())


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    return Kind(request.param, tmp_path)


async def ask(channel: Any, name: str) -> str:
    stub = scheduler_pb2_grpc.SchedulerDiagnosticsStub(channel)
    answer = await stub.ExplainGang(scheduler_pb2.ExplainGangRequest(name=name), timeout=20)
    return str(answer.gang.name)


async def refusal(channel: Any, name: str) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as told:
        await ask(channel, name)
    return told.value.code()


def test_health_is_told_of_each_service_and_of_the_whole(kind: Kind) -> None:
    """SERVING from the start, until the program says otherwise."""

    async def working(channel: Any, listener: Listener) -> None:
        health, kinds = health_pb2_grpc.HealthStub(channel), health_pb2.HealthCheckResponse
        for expected in (kinds.SERVING, kinds.NOT_SERVING):
            for name in ("", NAME, "grpc.health.v1.Health"):
                assert (await health.Check(health_pb2.HealthCheckRequest(service=name))).status == expected
            await listener.serving(False)

    kind.play(working)


def test_reflection_tells_every_service(kind: Kind) -> None:
    """grpcurl needs no .proto file."""

    async def working(channel: Any, _: Listener) -> None:
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        names = {item.name for item in (await call.read()).list_services_response.service}
        assert names == {NAME, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}

    kind.play(working)


def test_messages_are_bounded(kind: Kind) -> None:
    """Those that come in at 1 MiB, those that go out at 4 MiB; the connection goes on."""

    async def working(channel: Any, _: Listener) -> None:
        assert await refusal(channel, "x" * (1 << 20)) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await refusal(channel, str(MESSAGE_LIMIT_BYTES)) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert len(await ask(channel, str(MESSAGE_LIMIT_BYTES - 100))) == MESSAGE_LIMIT_BYTES - 100
        assert len(await ask(channel, "x" * ((1 << 20) - 100))) == (1 << 20) - 100

    kind.play(working)


def test_one_call_too_many_is_answered_at_once(kind: Kind) -> None:
    """Open streams count; where one ends there is room again."""

    async def working(channel: Any, _: Listener) -> None:
        held = channel.unary_stream(f"/{NAME}/WatchDecisions")(b"")
        await held.initial_metadata()
        assert await refusal(channel, "g") is grpc.StatusCode.RESOURCE_EXHAUSTED
        held.cancel()
        while True:
            try:
                assert await ask(channel, "g") == "g"
                break
            except grpc.aio.AioRpcError:
                continue

    kind.play(working, calls=1)


def test_a_body_that_is_no_message_is_the_callers_mistake(kind: Kind) -> None:
    async def working(channel: Any, _: Listener) -> None:
        with pytest.raises(grpc.aio.AioRpcError, match=r"send a sublet.v1.ExplainGangRequest") as told:
            await channel.unary_unary(f"/{NAME}/ExplainGang")(b"\xff\xfe not a message")
        assert told.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    kind.play(working)


def test_plain_text_on_loopback_only() -> None:
    """Any other address is refused with the fix."""
    with pytest.raises(ConfigurationFault, match="loopback only"):
        asyncio.run(loopback_server("0.0.0.0:0", ()))
    known = {"127.0.0.1:1": True, "localhost:1": True, "[::1]:1": True, "10.0.0.1:1": False, "example.org:1": False}
    assert {address: is_loopback(address) for address in known} == known


def test_a_socket_is_this_users_alone(tmp_path: Path) -> None:
    """It takes the place of one that a former process left."""
    (tmp_path / "s").write_text("left")
    kind = Kind("socket", tmp_path)

    async def working(channel: Any, listener: Listener) -> None:
        assert listener.address == f"unix:{tmp_path / 's'}"
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600
        assert await ask(channel, "g") == "g"

    kind.play(working)


def test_a_port_that_somebody_holds(tmp_path: Path) -> None:
    """It may be free later, so this is told from an address that must not be served; the fix is named."""
    kind = Kind("tls", tmp_path)
    write(kind.files, kind.authority)
    certificate = ServerCertificate(kind.files)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        for server in (
            loopback_server(address, ()),
            tls_server(address, certificate, OpenToAll(), (), 8),
        ):
            with pytest.raises(CannotListen, match=rf"{address}: cannot be listened on \(choose a free HOST:PORT\)"):
                asyncio.run(server)


def test_a_socket_whose_folder_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CannotListen, match=r"cannot be listened on$"):
        asyncio.run(socket_server(tmp_path / "missing" / "s", ()))


def test_authorization_sees_every_call(tmp_path: Path) -> None:
    """Health and reflection among them: it knows what is open."""
    kind = Kind("tls", tmp_path)

    async def working(channel: Any, _: Listener) -> None:
        await ask(channel, "g")
        await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert kind.authorization.methods == [f"/{NAME}/ExplainGang", "/grpc.health.v1.Health/Check"]

    kind.play(working)


def test_a_renewed_certificate_is_served_at_once(tmp_path: Path) -> None:
    """From the next connection on; calls that are open go on."""
    kind = Kind("tls", tmp_path)

    async def working(former: Any, listener: Listener) -> None:
        await ask(former, "g")
        renewed = LocalAuthority("next")
        write(kind.files, renewed)
        async with kind.channel(listener.address, renewed) as later:
            await ask(later, "g")
        await ask(former, "g")
        async with kind.channel(listener.address) as too_late:
            with pytest.raises(grpc.aio.AioRpcError, match="CERTIFICATE_VERIFY_FAILED"):
                await ask(too_late, "g")

    kind.play(working)
