"""The scheduler's side of NodeLink: one live stream a node, reports up, eviction costs down.

Out goes only what is newest: the last acknowledged sequence number and the costs, so a slow reader holds back
nothing and the outgoing queue is one message long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import grpc
import grpc.aio
import structlog

from model.fault import PeerFault
from model.report import EvictionCost
from scheduler.ports import Clock, Desk
from wire import codec
from wire.v1 import link_pb2, link_pb2_grpc

log = structlog.get_logger()

_NODE_USER = "system:node:"
_LAST_WRITE_SECONDS = 1.0
_CostKey: TypeAlias = tuple[tuple[str, str, int, int | None], ...]


class _Stream:
    """One agent's stream."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.received = 0
        self.acknowledged = 0
        self.replaced = asyncio.Event()
        self.wake = asyncio.Event()
        self.closing = False
        self.sent_costs: _CostKey | None = None
        self.costs_due_seconds = 0.0


class NodeLinkServicer(link_pb2_grpc.NodeLinkServicer):
    """`caller_of` names the owner of a call's token; only `system:node:X` may speak for node X."""

    name = "sublet.v1.NodeLink"

    def __init__(
        self,
        desk: Desk,
        caller_of: Callable[[Any], str],
        clock: Clock,
        *,
        costs_interval_seconds: float = 1.0,
        hello_within_seconds: float = 10.0,
    ) -> None:
        self._desk = desk
        self._caller_of = caller_of
        self._clock = clock
        self._interval = costs_interval_seconds
        self._patience = hello_within_seconds
        self._streams: dict[str, _Stream] = {}

    @property
    def links(self) -> int:
        """How many agents are connected."""
        return len(self._streams)

    def register(self, server: Any) -> None:
        link_pb2_grpc.add_NodeLinkServicer_to_server(self, server)

    async def Connect(self, request_iterator: Any, context: Any) -> None:
        """See proto/wire/v1/link.proto. A broken message ends the stream with INVALID_ARGUMENT and says why."""
        try:
            stream = await self._hello(context)
        except PeerFault as fault:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(fault))
            return
        except TimeoutError:
            await context.abort(
                grpc.StatusCode.DEADLINE_EXCEEDED, f"no hello within {self._patience:g} s; send it first"
            )
            return
        self._claim(stream)
        reading = asyncio.create_task(self._read(stream, context))
        writing = asyncio.create_task(self._write(stream, context))
        replaced = asyncio.create_task(stream.replaced.wait())
        try:
            await asyncio.wait([reading, writing, replaced], return_when=asyncio.FIRST_COMPLETED)
            await self._finish_writing(stream, writing)
        finally:
            for task in (reading, writing, replaced):
                task.cancel()
            outcomes = await asyncio.gather(reading, writing, replaced, return_exceptions=True)
            self._release(stream)
        await self._close(stream, context, [error for error in outcomes if isinstance(error, Exception)])

    async def _finish_writing(self, stream: _Stream, writing: asyncio.Task[None]) -> None:
        """gRPC sends no status while a write is under way, so that write gets a second to end by itself."""
        stream.closing = True
        stream.wake.set()
        await asyncio.wait([writing], timeout=_LAST_WRITE_SECONDS)

    async def _close(self, stream: _Stream, context: Any, errors: list[Exception]) -> None:
        """End the stream with a status that says whose fault it is; OK where the agent ended it."""
        for error in errors:
            if isinstance(error, PeerFault):
                log.warning("link refused", node=stream.node, error=str(error))
            else:
                log.error("link failed", node=stream.node, exc_info=error)
        refusal = next((error for error in errors if isinstance(error, PeerFault)), None)
        if refusal is not None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(refusal))
        if errors:
            told = f"the scheduler failed on the link of node {stream.node}: {type(errors[0]).__name__}; see its log"
            await context.abort(grpc.StatusCode.INTERNAL, told)
        if stream.replaced.is_set():
            await context.abort(grpc.StatusCode.ABORTED, f"a newer link of node {stream.node} replaces this one")

    async def _hello(self, context: Any) -> _Stream:
        async with asyncio.timeout(self._patience):
            message = await context.read()
        if message is grpc.aio.EOF or message.WhichOneof("body") != "hello":
            raise PeerFault("NodeMessage", "the first message is not hello", "send hello first")
        hello = codec.hello_from_wire(message.hello)
        caller = self._caller_of(context)
        if caller != _NODE_USER + hello.node:
            told = f"the token belongs to {caller}; node {hello.node} needs one of {_NODE_USER}{hello.node}"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, told)
        log.info("link opened", node=hello.node, agent_version=hello.agent_version, boot_id=hello.boot_id)
        stream = _Stream(hello.node)
        stream.received = message.sequence
        return stream

    def _claim(self, stream: _Stream) -> None:
        older = self._streams.get(stream.node)
        self._streams[stream.node] = stream
        if older is not None:
            older.replaced.set()
        stream.wake.set()
        self._desk.connected(stream.node)

    def _release(self, stream: _Stream) -> None:
        if self._streams.get(stream.node) is stream:
            del self._streams[stream.node]
            self._desk.disconnected(stream.node)
            log.info("link closed", node=stream.node)

    async def _read(self, stream: _Stream, context: Any) -> None:
        while (message := await context.read()) is not grpc.aio.EOF:
            if message.sequence <= stream.received:
                what = f"{message.sequence} came after {stream.received}"
                raise PeerFault("NodeMessage.sequence", what, "number messages upwards")
            self._take(stream.node, message)
            stream.received = message.sequence
            stream.wake.set()

    def _take(self, node: str, message: link_pb2.NodeMessage) -> None:
        """Hand one message to the desk. Raises PeerFault where it cannot be read."""
        match message.WhichOneof("body"):
            case "report":
                self._desk.report(node, codec.report_from_wire(message.report))
            case "decision":
                self._desk.decision(node, codec.decision_from_wire(message.decision.decision))
            case "checkpoint":
                self._desk.checkpoint(codec.checkpoint_from_wire(message.checkpoint))
            case "hello":
                raise PeerFault("NodeMessage", "a second hello", "open a new stream instead")
            case _:
                raise PeerFault("NodeMessage", "has no body this version knows", "run the same version on both sides")

    async def _write(self, stream: _Stream, context: Any) -> None:
        while not stream.closing:
            await self._woken(stream)
            costs = self._costs_due(stream)
            if costs is None and stream.acknowledged == stream.received:
                continue
            stream.acknowledged = stream.received
            message = link_pb2.SchedulerMessage(acknowledged_sequence=stream.acknowledged)
            if costs is not None:
                message.costs.CopyFrom(link_pb2.EvictionCosts(pods=[codec.cost_to_wire(cost) for cost in costs]))
            await context.write(message)

    async def _woken(self, stream: _Stream) -> None:
        """Until something came in, or costs may go out again."""
        try:
            async with asyncio.timeout(self._interval):
                await stream.wake.wait()
        except TimeoutError:
            return
        stream.wake.clear()

    def _costs_due(self, stream: _Stream) -> tuple[EvictionCost, ...] | None:
        """The node's costs where they changed, asked at most once an interval; growing older is no change."""
        now = self._clock()
        if now < stream.costs_due_seconds:
            return None
        stream.costs_due_seconds = now + self._interval
        costs = self._desk.costs(stream.node)
        key = tuple(_key(cost, now) for cost in costs)
        if key == stream.sent_costs:
            return None
        stream.sent_costs = key
        return costs


def _key(cost: EvictionCost, now: float) -> tuple[str, str, int, int | None]:
    saved = None if cost.checkpoint_age_seconds is None else round(now - cost.checkpoint_age_seconds)
    return (cost.pod_uid, cost.gang, cost.members_above_minimum, saved)
