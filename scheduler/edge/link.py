"""The scheduler's side of NodeLink: one live stream a node, reports up, eviction costs and preemption notices down.

Out goes only what is newest: the last acknowledged sequence number, the costs, and the notices that stand and were
not told on this stream, so a slow reader holds back nothing and nothing queues up for it; one that does not read at
all is given up. No stream outlives its caller's token for long: it is ended, and the agent comes back with a new one.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio
import structlog

from model.fault import KubernetesFault, PeerFault
from model.report import PreemptionNotice
from scheduler.link.callers import Callers, bearer
from scheduler.link.log_limit import LogLimit
from scheduler.link.notices import NoticeBoard
from scheduler.link.stream import LinkRate, LinkStream, StreamLimits
from scheduler.ports import Clock, NodeReportSink
from wire import codec
from wire.v1 import link_pb2, link_pb2_grpc

log = structlog.get_logger()

_LAST_WRITE_SECONDS = 1.0
_LONGEST_BYTES = {"hello": 2_048, "decision": 16_384, "checkpoint": 2_048}
"""What is kept of many agents, or logged, must be short; a report is one a node, and as long as its pods are many."""
_MOST_PODS = 4_096
_MOST_TERMS = 256
"""Of all decisions of a message. Empty parts take two bytes each on the wire, and a hundred where they are read."""
LEADER_KEY = "sublet-leader"
"""Trailing metadata beside UNAVAILABLE: HOST:PORT where the leader serves agents."""


class NodeLinkServicer(link_pb2_grpc.NodeLinkServicer):
    """Only who `callers` say is the agent of node X may speak for node X.

    Streams are taken from `lead` until `stand_by`; at all other times agents are told where the leader is.
    """

    name = "sublet.v1.NodeLink"

    def __init__(self, node_reports: NodeReportSink, callers: Callers, clock: Clock, limits: StreamLimits) -> None:
        self._node_reports = node_reports
        self._callers = callers
        self._clock = clock
        self._limits = limits
        self._notices = NoticeBoard(clock)
        self._streams: dict[str, LinkStream] = {}
        self._calls: Counter[str] = Counter()
        self._openings = LinkRate(limits.links_a_node)
        self._log_limit = LogLimit()
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
        """scheduler.ports.NoticeSender: to the node's stream, or to its next one while the deadline is ahead."""
        self._notices.put(node, notice)
        self._wake(node)

    def withdraw(self, node: str, pod_uid: str) -> None:
        """scheduler.ports.NoticeSender: the notice is withdrawn."""
        self._notices.remove(node, pod_uid)
        self._wake(node)

    def _wake(self, node: str) -> None:
        if node in self._streams:
            self._streams[node].wake.set()

    async def Connect(self, request_iterator: Any, context: Any) -> None:
        """See proto/wire/v1/link.proto. A broken message ends the stream with INVALID_ARGUMENT and says why."""
        if not self._leading:
            await self._send_away(context)
        node = await self._node_of(context)
        try:
            stream = await self._hello(node, context)
        except PeerFault as fault:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(fault))
            return
        except TimeoutError:
            told = f"no hello within {self._limits.patience_seconds:g} s; send it first"
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, told)
            return
        if not self._leading:
            await self._send_away(context)
        self._claim(stream)
        reading = asyncio.create_task(self._read(stream, context))
        writing = asyncio.create_task(self._write(stream, context))
        over = asyncio.create_task(stream.over.wait())
        loop = asyncio.get_running_loop()
        age = loop.call_later(self._limits.life_seconds * random.uniform(0.9, 1.1), stream.renew)
        try:
            await asyncio.wait([reading, writing, over], return_when=asyncio.FIRST_COMPLETED)
            await self._finish_writing(stream, writing)
        finally:
            age.cancel()
            for task in (reading, writing, over):
                task.cancel()
            outcomes = await asyncio.gather(reading, writing, over, return_exceptions=True)
            if stream.renewing:
                loop.call_later(self._limits.renewal_seconds, self._release, stream)
            else:
                self._release(stream)
        await self._close(stream, context, [error for error in outcomes if isinstance(error, Exception)])

    async def _finish_writing(self, stream: LinkStream, writing: asyncio.Task[None]) -> None:
        """gRPC sends no status while a write is under way, so that write gets a second to end by itself."""
        stream.closing = True
        stream.wake.set()
        await asyncio.wait([writing], timeout=_LAST_WRITE_SECONDS)

    async def _close(self, stream: LinkStream, context: Any, errors: list[Exception]) -> None:
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

    async def _node_of(self, context: Any) -> str:
        """The node the caller may speak for, known before anything is waited for."""
        try:
            caller = await self._callers.caller(bearer(context.invocation_metadata()))
            node = await self._callers.node_of(caller) if caller else ""
        except KubernetesFault as fault:
            told = "the API server cannot be asked who you are; try again"
            await self._refuse(context, grpc.StatusCode.UNAVAILABLE, told, error=str(fault))
        if not node:
            told = f"the token belongs to {caller.name if caller else 'nobody'}, which is no node's agent"
            await self._refuse(context, grpc.StatusCode.PERMISSION_DENIED, told)
        if self._calls[node] >= self._limits.streams_a_node:
            told = f"node {node} has {self._calls[node]} streams open; close them first"
            await self._refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, told)
        if not self._openings.take(node, asyncio.get_running_loop().time()):
            told = f"node {node} opens links too often; wait some seconds"
            await self._refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, told)
        self._calls[node] += 1
        context.add_done_callback(lambda _: self._call_over(node))
        return node

    def _call_over(self, node: str) -> None:
        self._calls[node] -= 1
        if not self._calls[node]:
            del self._calls[node]

    async def _refuse(self, context: Any, code: grpc.StatusCode, told: str, **more: str) -> None:
        untold = self._log_limit.due(asyncio.get_running_loop().time())
        if untold is not None:
            log.warning("link refused", peer=context.peer(), code=code.name, told=told, untold_before=untold, **more)
        await context.abort(code, told)

    async def _hello(self, node: str, context: Any) -> LinkStream:
        async with asyncio.timeout(self._limits.patience_seconds):
            message = await context.read()
        if message is grpc.aio.EOF or message.WhichOneof("body") != "hello":
            raise PeerFault("NodeMessage", "the first message is not hello", "send hello first")
        _bounded(message)
        hello = codec.hello_from_wire(message.hello)
        if hello.node != node:
            told = f"the token is bound to node {node} and cannot speak for node {hello.node}"
            await self._refuse(context, grpc.StatusCode.PERMISSION_DENIED, told)
        log.info("link opened", node=hello.node, agent_version=hello.agent_version, boot_id=hello.boot_id)
        stream = LinkStream(hello.node)
        stream.received = message.sequence
        return stream

    def _claim(self, stream: LinkStream) -> None:
        older = self._streams.get(stream.node)
        self._streams[stream.node] = stream
        if older is not None:
            older.end(grpc.StatusCode.ABORTED, f"a newer link of node {stream.node} replaces this one")
        stream.wake.set()
        self._node_reports.connected(stream.node)

    def _release(self, stream: LinkStream) -> None:
        if self._streams.get(stream.node) is stream:
            del self._streams[stream.node]
            self._node_reports.disconnected(stream.node)
            log.info("link closed", node=stream.node)

    async def _read(self, stream: LinkStream, context: Any) -> None:
        while (message := await context.read()) is not grpc.aio.EOF:
            if message.sequence <= stream.received:
                what = f"{message.sequence} came after {stream.received}"
                raise PeerFault("NodeMessage.sequence", what, "number messages upwards")
            self._take(stream.node, message)
            stream.received = message.sequence
            stream.wake.set()
            now = asyncio.get_running_loop().time()
            if rest := stream.rest(now, self._limits.messages_a_second, message.ByteSize()):
                await asyncio.sleep(rest)

    def _take(self, node: str, message: link_pb2.NodeMessage) -> None:
        """Hand one message to the node reports. Raises PeerFault where it cannot be read."""
        _bounded(message)
        match message.WhichOneof("body"):
            case "report":
                self._node_reports.report(node, codec.report_from_wire(message.report))
            case "decision":
                self._node_reports.decision(node, codec.decision_from_wire(message.decision.decision))
            case "checkpoint":
                saved = codec.checkpoint_from_wire(message.checkpoint, self._clock())
                self._node_reports.checkpoints(((node, saved),))
            case "hello":
                raise PeerFault("NodeMessage", "a second hello", "open a new stream instead")
            case _:
                raise PeerFault("NodeMessage", "has no body this version knows", "run the same version on both sides")

    async def _write(self, stream: LinkStream, context: Any) -> None:
        while not stream.closing:
            await self._woken(stream)
            for news in self._news(stream):
                await self._send(stream, context, news)
            costs = stream.costs_due(self._node_reports.costs, self._clock(), self._limits.costs_interval_seconds)
            if costs is None and stream.acknowledged == stream.received:
                continue
            stream.acknowledged = stream.received
            message = link_pb2.SchedulerMessage(acknowledged_sequence=stream.acknowledged)
            if costs is not None:
                message.costs.CopyFrom(link_pb2.EvictionCosts(pods=[codec.cost_to_wire(cost) for cost in costs]))
            await self._send(stream, context, message)

    async def _send(self, stream: LinkStream, context: Any, message: link_pb2.SchedulerMessage) -> None:
        """Until gRPC has taken it; what it takes without its being read is bounded by flow control."""
        try:
            async with asyncio.timeout(self._limits.patience_seconds):
                await context.write(message)
        except TimeoutError:
            told = f"nothing was read for {self._limits.patience_seconds:g} s"
            log.warning("link given up", node=stream.node, why=told)
            stream.end(grpc.StatusCode.RESOURCE_EXHAUSTED, told)
            stream.closing = True

    def _news(self, stream: LinkStream) -> Iterator[link_pb2.SchedulerMessage]:
        open_notices, withdrawn = stream.notices(self._notices.of(stream.node), self._clock())
        for notice in open_notices:
            yield self._message(stream, preemption=codec.notice_to_wire(notice))
        for uid in withdrawn:
            yield self._message(stream, withdrawal=link_pb2.PreemptionWithdrawal(pod_uid=uid))

    def _message(self, stream: LinkStream, **body: Any) -> link_pb2.SchedulerMessage:
        return link_pb2.SchedulerMessage(acknowledged_sequence=stream.acknowledged, **body)

    async def _woken(self, stream: LinkStream) -> None:
        """Until something came in, or costs may go out again."""
        try:
            async with asyncio.timeout(self._limits.costs_interval_seconds):
                await stream.wake.wait()
        except TimeoutError:
            return
        stream.wake.clear()


def _bounded(message: link_pb2.NodeMessage) -> None:
    """Raises PeerFault."""
    body, size = message.WhichOneof("body"), message.ByteSize()
    longest = _LONGEST_BYTES.get(body, size)
    if size > longest:
        raise PeerFault(f"NodeMessage.{body}", f"has {size} bytes", f"send at most {longest}")
    pods = len(message.report.pods)
    if pods > _MOST_PODS:
        raise PeerFault("Report.pods", f"are {pods}", f"send at most {_MOST_PODS}")
    decisions = message.report.reclaimable if body == "report" else [message.decision.decision]
    terms = len(decisions) + sum(len(decision.terms) for decision in decisions)
    if terms > _MOST_TERMS:
        raise PeerFault(f"NodeMessage.{body}", f"has {terms} decisions and terms", f"send at most {_MOST_TERMS}")


def _directions(leader: str) -> str:
    return f"this scheduler does not lead; the leader is at {leader or 'an address not known yet'}"
