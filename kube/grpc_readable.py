"""A gRPC body that is no message of its method is the caller's mistake: INVALID_ARGUMENT, with what was expected.

gRPC's own answer is INTERNAL, which says that the server is broken, and clients may try again.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from model.fault import PeerFault


class _Unreadable:
    """What stands in for a message that could not be read."""


class Readable(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """For every server of ours; the last interceptor, so that who may not call learns nothing of messages."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        # Without a deserializer bytes are passed on to somebody who reads them.
        if handler is None or handler.request_deserializer is None:
            return handler
        return _tolerant(handler, details.method)


def _tolerant(handler: Any, method: str) -> Any:
    read = handler.request_deserializer
    descriptor = getattr(getattr(read, "__self__", None), "DESCRIPTOR", None)
    fault = PeerFault(method, "the body cannot be read", f"send a {getattr(descriptor, 'full_name', 'message')}")

    def deserialize(body: bytes) -> Any:
        try:
            return read(body)
        except DecodeError:
            return _Unreadable()

    shape = f"{_manner(handler.request_streaming)}_{_manner(handler.response_streaming)}"
    behaviour = getattr(handler, shape)
    if inspect.isasyncgenfunction(behaviour):
        wrapped: Any = _generating(behaviour, fault)
    elif inspect.iscoroutinefunction(behaviour):
        wrapped = _awaited(behaviour, fault)
    else:
        return handler
    build = getattr(grpc, f"{shape}_rpc_method_handler")
    return build(wrapped, deserialize, handler.response_serializer)


def _manner(streaming: bool) -> str:
    return "stream" if streaming else "unary"


def _awaited(behaviour: Any, fault: PeerFault) -> Any:
    async def answer(request: Any, context: Any) -> Any:
        return await behaviour(await _checked(request, context, fault), _Context(context, fault))

    return answer


def _generating(behaviour: Any, fault: PeerFault) -> Any:
    async def answer(request: Any, context: Any) -> AsyncIterator[Any]:
        async for message in behaviour(await _checked(request, context, fault), _Context(context, fault)):
            yield message

    return answer


async def _checked(request: Any, context: Any, fault: PeerFault) -> Any:
    """The one message, or the messages as they come."""
    if isinstance(request, _Unreadable):
        await _refuse(context, fault)
    return _each(request, context, fault) if hasattr(request, "__aiter__") else request


async def _each(requests: AsyncIterator[Any], context: Any, fault: PeerFault) -> AsyncIterator[Any]:
    async for request in requests:
        if isinstance(request, _Unreadable):
            await _refuse(context, fault)
        yield request


async def _refuse(context: Any, fault: PeerFault) -> None:
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(fault))


class _Context:
    """A call's context; `read` raises PeerFault for what is no message."""

    def __init__(self, context: Any, fault: PeerFault) -> None:
        self._context = context
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def read(self) -> Any:
        message = await self._context.read()
        if isinstance(message, _Unreadable):
            raise self._fault
        return message
