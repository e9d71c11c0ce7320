"""Passes SchedulerDiagnostics on to where they are answered: the loopback server of the scheduling process.

Messages pass as bytes. On the wire a unary call is a stream of one message, so one kind of handler serves all methods.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from wire.v1 import scheduler_pb2

# Also what reflection tells of the service: who asks with grpcurl needs no .proto file.
_SERVICE = scheduler_pb2.DESCRIPTOR.services_by_name["SchedulerDiagnostics"]
_METHODS = frozenset(f"/{_SERVICE.full_name}/{method.name}" for method in _SERVICE.methods)
_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


class DiagnosticsForwarder(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers UNAVAILABLE while there is nowhere to pass calls on to."""

    name: str = _SERVICE.full_name

    def __init__(self) -> None:
        self._channel: Any = None

    def register(self, server: Any) -> None:
        server.add_generic_rpc_handlers((self,))

    async def aim(self, address: str) -> None:
        """Pass calls on to `address` (plain text, loopback) from here on; empty for nowhere."""
        former, self._channel = self._channel, None
        if address:
            self._channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
        if former is not None:
            await former.close()

    def service(self, details: Any) -> Any:
        """A handler for each method of the service."""
        if details.method not in _METHODS:
            return None

        async def forward(request: bytes, context: Any) -> AsyncIterator[bytes]:
            async for message in self._forward(details.method, request, context):
                yield message

        return grpc.unary_stream_rpc_method_handler(forward)

    async def _forward(self, method: str, request: bytes, context: Any) -> AsyncIterator[bytes]:
        if self._channel is None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "this scheduler does not lead; ask the leader")
        call = self._channel.unary_stream(method)(request, timeout=context.time_remaining())
        try:
            async for message in call:
                yield message
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
        finally:
            call.cancel()
