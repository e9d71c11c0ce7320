"""The agent's end of the link: reports up, eviction costs and preemption notices down, reconnecting for ever."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import structlog

from agent.core.publish import due_for_link
from agent.ports import TickResult
from model.fault import ConfigurationFault
from model.report import AgentHello, CheckpointSaved, EvictionCost, NodeReport, PreemptionNotice
from wire import codec
from wire.v1 import link_pb2, link_pb2_grpc

log = structlog.get_logger()

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 15.0
_QUEUE = 256
_OPTIONS = (
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", 4 << 20),
)


class LinkClient:
    """A sink of the tick. Without a link the agent works on from its own facts: costs are neutral, nothing waits."""

    def __init__(
        self, address: str, ca: Path, token: Path, hello: AgentHello, on_notice: Callable[[PreemptionNotice], None]
    ) -> None:
        self._address = address
        self._ca = ca
        self._token = token
        self._hello = hello
        self._on_notice = on_notice
        self._sent: NodeReport | None = None
        self._newest: NodeReport | None = None
        self._outgoing: deque[link_pb2.NodeMessage] = deque(maxlen=_QUEUE)
        self._wake = asyncio.Event()
        self._sequence = 0
        self.connected = False
        self.acknowledged = 0
        self.costs: dict[str, EvictionCost] = {}

    def take(self, result: TickResult) -> None:
        if result.report is not None and due_for_link(self._sent, result.report):
            self._newest = self._sent = result.report
        for decision in result.cuts:
            notice = link_pb2.DecisionNotice(decision=codec.decision_to_wire(decision))
            self._outgoing.append(link_pb2.NodeMessage(decision=notice))
        if self._newest is not None or self._outgoing:
            self._wake.set()

    def checkpoint(self, saved: CheckpointSaved) -> None:
        """Pass on what a training process reported; kept until the link is up, within the queue's bound."""
        self._outgoing.append(link_pb2.NodeMessage(checkpoint=codec.checkpoint_to_wire(saved)))
        self._wake.set()

    async def run(self) -> None:
        """Never returns. Certificate and token are read anew at every attempt, so rotation needs no restart."""
        delay = _FIRST_DELAY_SECONDS
        while True:
            try:
                await self._connect()
                delay = _FIRST_DELAY_SECONDS
            except grpc.aio.AioRpcError as error:
                if self.connected:
                    delay = _FIRST_DELAY_SECONDS
                log.warning("link lost", scheduler=self._address, code=error.code().name, detail=error.details())
            except ConfigurationFault as fault:
                log.error("link not possible", error=str(fault))
            finally:
                self.connected = False
            await asyncio.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(delay * 2, _LONGEST_DELAY_SECONDS)

    async def _connect(self) -> None:
        credentials = grpc.ssl_channel_credentials(_contents(self._ca))
        metadata = (("authorization", f"Bearer {_text(self._token)}"),)
        async with grpc.aio.secure_channel(self._address, credentials, options=_OPTIONS) as channel:
            stream = link_pb2_grpc.NodeLinkStub(channel).Connect(metadata=metadata)
            sending = asyncio.create_task(self._send(stream))
            try:
                async for message in stream:
                    if not self.connected:
                        log.info("link up", scheduler=self._address)
                    self.connected = True
                    self._receive(message)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        log.warning("link closed by the scheduler", scheduler=self._address)

    async def _send(self, stream: Any) -> None:
        """Hello, the newest report, then what comes. A message leaves the queue once it was written."""
        self._newest = self._sent
        await stream.write(self._numbered(link_pb2.NodeMessage(hello=codec.hello_to_wire(self._hello))))
        while True:
            if self._newest is not None:
                report, self._newest = self._newest, None
                await stream.write(self._numbered(link_pb2.NodeMessage(report=codec.report_to_wire(report))))
            while self._outgoing:
                message = self._outgoing[0]
                await stream.write(self._numbered(message))
                if self._outgoing and self._outgoing[0] is message:
                    self._outgoing.popleft()
            self._wake.clear()
            if not self._outgoing and self._newest is None:
                await self._wake.wait()

    def _numbered(self, message: link_pb2.NodeMessage) -> link_pb2.NodeMessage:
        self._sequence += 1
        message.sequence = self._sequence
        return message

    def _receive(self, message: link_pb2.SchedulerMessage) -> None:
        self.acknowledged = max(self.acknowledged, message.acknowledged_sequence)
        if message.HasField("costs"):
            self.costs = {cost.pod_uid: codec.cost_from_wire(cost) for cost in message.costs.pods}
        if message.HasField("preemption"):
            self._on_notice(codec.notice_from_wire(message.preemption))


def _text(path: Path) -> str:
    try:
        return _contents(path).decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise ConfigurationFault(str(path), "is not a token", "write one line of plain text") from error


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationFault(str(path), f"cannot be read: {error.strerror}") from error
