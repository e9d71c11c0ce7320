"""A body that is no message is INVALID_ARGUMENT with the method and what it expects, in every shape of call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from kube.grpc_readable import Readable
from model.fault import PeerFault
from wire.v1 import agent_pb2, agent_pb2_grpc, link_pb2, link_pb2_grpc

GARBAGE = b"\xff\xfe not a message"
_HEALTH, _REFLECTION = "/grpc.health.v1.Health", "/grpc.reflection.v1alpha.ServerReflection"


class Diagnostics(agent_pb2_grpc.AgentDiagnosticsServicer):
    async def GetNode(self, request: Any, context: Any) -> Any:
        return agent_pb2.NodeStatus(node="n1")

    async def WatchDecisions(self, request: Any, context: Any) -> AsyncIterator[Any]:
        raise AssertionError("nothing that cannot be read gets here")
        yield


class Link(link_pb2_grpc.NodeLinkServicer):
    async def Connect(self, requests: Any, context: Any) -> None:
        """As ours does: messages are read one by one."""
        try:
            while await context.read() is not grpc.aio.EOF:
                await context.write(link_pb2.SchedulerMessage())
        except PeerFault as fault:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(fault))


async def serve(channel_scene: Any) -> None:
    server = grpc.aio.server(interceptors=(Readable(),))
    agent_pb2_grpc.add_AgentDiagnosticsServicer_to_server(Diagnostics(), server)
    link_pb2_grpc.add_NodeLinkServicer_to_server(Link(), server)
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    reflection.enable_server_reflection((), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with asyncio.timeout(20), grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await channel_scene(channel)
    finally:
        await server.stop(0)


@pytest.mark.parametrize(
    ("shape", "method", "expected"),
    [
        ("unary_unary", "/sublet.v1.AgentDiagnostics/GetNode", "sublet.v1.GetNodeRequest"),
        ("unary_stream", "/sublet.v1.AgentDiagnostics/WatchDecisions", "sublet.v1.WatchDecisionsRequest"),
        ("stream_stream", "/sublet.v1.NodeLink/Connect", "sublet.v1.NodeMessage"),
        ("unary_unary", f"{_HEALTH}/Check", "grpc.health.v1.HealthCheckRequest"),
        ("unary_stream", f"{_HEALTH}/Watch", "grpc.health.v1.HealthCheckRequest"),
        ("stream_stream", f"{_REFLECTION}/ServerReflectionInfo", "grpc.reflection.v1alpha.ServerReflectionRequest"),
    ],
    ids=lambda value: value.rpartition("/")[2] if value.startswith("/") else "",
)
def test_garbage(shape: str, method: str, expected: str) -> None:
    async def scene(channel: Any) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await told(channel, shape, method)
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert raised.value.details() == f"{method}: the body cannot be read (send a {expected})"

    asyncio.run(serve(scene))


def test_messages_pass() -> None:
    """A good call is answered as ever, also on a connection that brought garbage before."""

    async def scene(channel: Any) -> None:
        with pytest.raises(grpc.aio.AioRpcError):
            await told(channel, "unary_unary", "/sublet.v1.AgentDiagnostics/GetNode")
        answer = await agent_pb2_grpc.AgentDiagnosticsStub(channel).GetNode(agent_pb2.GetNodeRequest())
        assert answer.node == "n1"
        call = link_pb2_grpc.NodeLinkStub(channel).Connect()
        await call.write(link_pb2.NodeMessage(sequence=1))
        assert isinstance(await call.read(), link_pb2.SchedulerMessage)
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF

    asyncio.run(serve(scene))


async def told(channel: Any, shape: str, method: str) -> None:
    """Send garbage, and read what comes."""
    call = getattr(channel, shape)(method)
    if shape == "unary_unary":
        await call(GARBAGE)
    elif shape == "unary_stream":
        async for _ in call(GARBAGE):
            pass
    else:
        stream = call()
        await stream.write(GARBAGE)
        async for _ in stream:
            pass
