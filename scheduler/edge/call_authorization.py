"""Who may call which gRPC method over the network: known tokens, and the rights they have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import grpc
import grpc.aio
import structlog

from model.fault import KubernetesFault
from scheduler.link.callers import Callers, bearer
from scheduler.link.log_limit import LogLimit

log = structlog.get_logger()

_OPEN = "/grpc.health.v1.Health/Check"
"""What a probe asks without a token; Watch would let anybody hold a call for as long as it likes."""
_PROBE_SECONDS = 5.0
_REFLECTION = "/grpc.reflection."
"""Open to any known token, so it may not be held either: all calls that are open keep agents from their links."""
_REFLECTION_SECONDS = 10.0
"""grpcurl is through in less than one."""


class _Refusal(NamedTuple):
    code: grpc.StatusCode
    message: str


class CallAuthorization(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Lets nobody but known callers in, and those to what they may call; health checks are open.

    A refusal ends the call at once and costs us at most one log line a second.
    """

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self._refusals, self._faults = LogLimit(), LogLimit()

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        if details.method == _OPEN:
            return _hurried(handler)
        refusal = await self._refusal(details.method, bearer(details.invocation_metadata))
        if refusal is None and details.method.startswith(_REFLECTION):
            return _brief(handler)
        return handler if refusal is None else _refusing(handler, refusal, lambda peer: self._tell(peer, refusal))

    async def _refusal(self, method: str, token: str) -> _Refusal | None:
        try:
            caller = await self._callers.caller(token)
            if caller is None:
                message = "send metadata `authorization: Bearer TOKEN` with a known token"
                return _Refusal(grpc.StatusCode.UNAUTHENTICATED, message)
            if await self._callers.allowed(caller, method):
                return None
        except KubernetesFault as fault:
            if self._faults.due(asyncio.get_running_loop().time()) is not None:
                log.warning("who calls cannot be found out", error=str(fault))
            message = "the API server cannot be asked who you are; try again"
            return _Refusal(grpc.StatusCode.UNAVAILABLE, message)
        message = f"{caller.name} may not call {method}; bind it to ClusterRole sublet-viewer"
        return _Refusal(grpc.StatusCode.PERMISSION_DENIED, message)

    def _tell(self, peer: str, refusal: _Refusal) -> None:
        untold = self._refusals.due(asyncio.get_running_loop().time())
        if untold is not None:
            log.warning("call refused", peer=peer, code=refusal.code.name, told=refusal.message, untold_before=untold)


def _refusing(handler: Any, refusal: _Refusal, tell: Callable[[str], None]) -> Any:
    """A handler that refuses whatever kind of call it is, before its message is waited for.

    On the wire a unary call is a stream of one message; gRPC waits for that one for as long as the client likes.
    """

    async def refuse(requests: Any, context: Any) -> None:
        tell(context.peer())
        await context.abort(refusal.code, refusal.message)

    return grpc.stream_stream_rpc_method_handler(refuse, handler.request_deserializer, handler.response_serializer)


def _hurried(handler: Any) -> Any:
    """A unary method whose message is waited for no longer than a probe's takes."""

    async def answer(requests: Any, context: Any) -> Any:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                request = await anext(aiter(requests), None)
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"no message within {_PROBE_SECONDS:g} s")
        if request is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a call without a message")
        return await handler.unary_unary(request, context)

    return grpc.stream_unary_rpc_method_handler(answer, handler.request_deserializer, handler.response_serializer)


def _brief(handler: Any) -> Any:
    """A stream both ways that ends after a while, whatever its peer says."""

    async def answer(requests: Any, context: Any) -> Any:
        try:
            async with asyncio.timeout(_REFLECTION_SECONDS):
                async for response in handler.stream_stream(requests, context):
                    yield response
        except TimeoutError:
            told = f"reflection is answered for {_REFLECTION_SECONDS:g} s; ask again"
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, told)

    return grpc.stream_stream_rpc_method_handler(answer, handler.request_deserializer, handler.response_serializer)
