"""The scheduler's side of NodeLink: one live stream a node, reports up, eviction costs and preemption notices down.

Out goes only what is newest: the last acknowledged sequence number, the costs, and the notices that stand and were
not told on this stream, so a slow reader holds back nothing and nothing queues up for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import grpc
import grpc.aio
import structlog

from model.fault import PeerFault
from model.report import EvictionCost, PreemptionNotice
from scheduler.notices import NoticeBoard
from scheduler.ports import Clock, Desk
from wire import codec
from wire.v1 import link_pb2, link_pb2_grpc

log = structlog.get_logger()

_NODE_USER = "system:node:"
_LAST_WRITE_SECONDS = 1.0
LEADER_KEY = "sublet-leader"
"""Trailing metadata beside UNAVAILABLE: HOST:PORT where the leader serves agents."""
_CostKey: TypeAlias = tuple[tuple[str, str, int, int | None], ...]


class _Stream:
    """One agent's stream; `ending` is the status we end it with, once we do."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.received = 0
        self.acknowledged = 0
        self.over = asyncio.Event()
        self.ending: tuple[grpc.StatusCode, str] | None = None
        self.told: dict[str, PreemptionNotice] = {}
        self.wake = asyncio.Event()
        self.closing = False
        self.sent_costs: _CostKey | None = None
        self.costs_due_seconds = 0.0

    def end(self, code: grpc.StatusCode, why: str) -> None:
        self.ending = (code, why)
        self.over.set()


class NodeLinkServicer(link_pb2_grpc.NodeLinkServicer):
    """`caller_of` names the owner of a call's token; only `system:node:X` may speak for node X.

    Streams are taken from `lead` until `stand_by`; at all other times agents are told where the leader is.
    """

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
        self._notices = NoticeBoard(clock)
        self._streams: dict[str, _Stream] = {}
        self._leading = False
        self._leader = ""

    @property
    def links(self) -> int:
        """How many agents are connected."""
        return len(self._streams)

    def register(self, server: Any) -> None:
        link_pb2_grpc.add_NodeLinkServicer_to_server(self, server)

    def lead(self) -> None:
        """Take streams."""
        self._leading = True

    def stand_by(self, leader: str) -> None:
        """End all streams, and send their agents to `leader` (empty where nobody is known to lead)."""
        self._leading, self._leader = False, leader
        for stream in self._streams.values():
            stream.end(grpc.StatusCode.UNAVAILABLE, _directions(leader))

    def notify(self, node: str, notice: PreemptionNotice) -> None:
        """scheduler.ports.Courier: to the node's stream, or to its next one while the deadline is ahead."""
        self._notices.put(node, notice)
        self._wake(node)

    def withdraw(self, node: str, pod_uid: str) -> None:
        """scheduler.ports.Courier: the pod is spared."""
        self._notices.remove(node, pod_uid)
        self._wake(node)

    def _wake(self, node: str) -> None:
        if node in self._streams:
            self._streams[node].wake.set()

    async def Connect(self, request_iterator: Any, context: Any) -> None:
        """See proto/wire/v1/link.proto. A broken message ends the stream with INVALID_ARGUMENT and says why."""
        if not self._leading:
            await self._send_away(context)
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
        if not self._leading:
            await self._send_away(context)
        self._claim(stream)
        reading = asyncio.create_task(self._read(stream, context))
        writing = asyncio.create_task(self._write(stream, context))
        over = asyncio.create_task(stream.over.wait())
        try:
            await asyncio.wait([reading, writing, over], return_when=asyncio.FIRST_COMPLETED)
            await self._finish_writing(stream, writing)
        finally:
            for task in (reading, writing, over):
                task.cancel()
            outcomes = await asyncio.gather(reading, writing, over, return_exceptions=True)
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
        if stream.ending is not None:
            code, why = stream.ending
            await context.abort(code, why, self._hint() if code is grpc.StatusCode.UNAVAILABLE else ())

    async def _send_away(self, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNAVAILABLE, _directions(self._leader), self._hint())

    def _hint(self) -> tuple[tuple[str, str], ...]:
        return ((LEADER_KEY, self._leader),) if self._leader else ()

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
            older.end(grpc.StatusCode.ABORTED, f"a newer link of node {stream.node} replaces this one")
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
            for news in self._news(stream):
                await context.write(news)
            costs = self._costs_due(stream)
            if costs is None and stream.acknowledged == stream.received:
                continue
            stream.acknowledged = stream.received
            message = link_pb2.SchedulerMessage(acknowledged_sequence=stream.acknowledged)
            if costs is not None:
                message.costs.CopyFrom(link_pb2.EvictionCosts(pods=[codec.cost_to_wire(cost) for cost in costs]))
            await context.write(message)

    def _news(self, stream: _Stream) -> Iterator[link_pb2.SchedulerMessage]:
        """Notices this stream was not told, and withdrawals of those it was and that stand no longer."""
        standing = {notice.pod_uid: notice for notice in self._notices.of(stream.node)}
        before, stream.told = stream.told, standing
        for uid, notice in standing.items():
            if before.get(uid) != notice:
                yield self._message(stream, preemption=codec.notice_to_wire(notice))
        now = self._clock()
        for uid, notice in before.items():
            if uid not in standing and notice.deadline_seconds > now:
                yield self._message(stream, withdrawal=link_pb2.PreemptionWithdrawal(pod_uid=uid))

    def _message(self, stream: _Stream, **body: Any) -> link_pb2.SchedulerMessage:
        return link_pb2.SchedulerMessage(acknowledged_sequence=stream.acknowledged, **body)

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


def _directions(leader: str) -> str:
    return f"this scheduler does not lead; the leader is at {leader or 'an address not known yet'}"


def _key(cost: EvictionCost, now: float) -> tuple[str, str, int, int | None]:
    saved = None if cost.checkpoint_age_seconds is None else round(now - cost.checkpoint_age_seconds)
    return (cost.pod_uid, cost.gang, cost.members_above_minimum, saved)
