"""The agent's end of the link: reports up, eviction costs and preemption notices down, reconnecting for ever.

A scheduler that does not lead says where the leader is. Its word is followed only as far as the certificate goes: who
serves there must prove to be whom this agent was told to call.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import msgspec
import structlog

from agent.core.lend.report import due_for_link
from agent.ports import TickResult
from kube.grpc_server import MESSAGE_LIMIT_BYTES
from model.fault import ConfigurationFault
from model.report import AgentHello, CheckpointSaved, EvictionCost, NodeReport, PreemptionNotice
from wire import codec
from wire.v1 import link_pb2, link_pb2_grpc

log = structlog.get_logger()

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 15.0
_STEADY_SECONDS = 30.0
"""A link that lasted so long and was ended in order is taken up again at once; it was ended because of its age."""
_QUEUE = 256
_MOST_CHECKPOINTS = 4096
_LEADER_KEY = "sublet-leader"
_ADDRESS = re.compile(r"[0-9A-Za-z.-]{1,253}:[0-9]{1,5}|\[[0-9A-Fa-f:.]{2,45}\]:[0-9]{1,5}")
STATUS_LOST = "Internal error from Core"
"""What grpc.aio says where a refusal overtakes a write; the call's own status and trailers are gone then."""
_OPTIONS = (
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
)


class LinkAccess(msgspec.Struct, frozen=True):
    """Where the scheduler is (HOST:PORT), and the files of who may be trusted there and of who we are."""

    address: str
    ca: Path
    token: Path


class LinkClient:
    """A sink of the tick. Without a link the agent works on from its own facts: costs are neutral, nothing waits.

    `on_withdrawn` gets the uid of a pod that was given notice and is not to be preempted after all.
    """

    def __init__(
        self,
        access: LinkAccess,
        hello: AgentHello,
        on_notice: Callable[[PreemptionNotice], None],
        on_withdrawn: Callable[[str], None],
        steady_seconds: float = _STEADY_SECONDS,
    ) -> None:
        self._steady = steady_seconds
        self._address = access.address
        self._ca = access.ca
        self._token = access.token
        self._hello = hello
        self._on_notice = on_notice
        self._on_withdrawn = on_withdrawn
        self._leader = ""
        self._sent: NodeReport | None = None
        self._newest: NodeReport | None = None
        self._outgoing: deque[link_pb2.NodeMessage] = deque(maxlen=_QUEUE)
        self._checkpoints: dict[str, CheckpointSaved] = {}
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
        """Pass on what a pod reported; the newest of each is kept until the link is up."""
        self._checkpoints.pop(saved.pod_uid, None)
        self._checkpoints[saved.pod_uid] = saved
        if len(self._checkpoints) > _MOST_CHECKPOINTS:
            del self._checkpoints[next(iter(self._checkpoints))]
        self._wake.set()

    async def run(self) -> None:
        """Never returns. Certificate and token are read again at every attempt, so rotation needs no restart."""
        delay = _FIRST_DELAY_SECONDS
        now = asyncio.get_running_loop().time
        while True:
            began = now()
            try:
                await self._connect()
                delay = _FIRST_DELAY_SECONDS
                if now() - began > self._steady:
                    continue
            except grpc.aio.AioRpcError as error:
                if self.connected:
                    delay = _FIRST_DELAY_SECONDS
                self._tell(error)
                self._leader = _leader_named(error)
            except ConfigurationFault as fault:
                log.error("link not possible", error=str(fault))
            finally:
                self.connected = False
            await asyncio.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(delay * 2, _LONGEST_DELAY_SECONDS)

    def _tell(self, error: grpc.aio.AioRpcError) -> None:
        code, detail = error.code(), error.details() or ""
        fix = advice(code, detail, LinkAccess(self._address, self._ca, self._token))
        log.warning("link lost", scheduler=self._target, code=code.name, detail=detail, fix=fix)

    @property
    def _target(self) -> str:
        return self._leader or self._address

    def _options(self) -> tuple[tuple[str, str | int], ...]:
        """A leader is asked for the certificate of the address we were given, by whatever address it is reached."""
        if not self._leader:
            return _OPTIONS
        host = self._address.rpartition(":")[0].strip("[]")
        return (*_OPTIONS, ("grpc.ssl_target_name_override", host))

    async def _connect(self) -> None:
        credentials = grpc.ssl_channel_credentials(_contents(self._ca))
        metadata = (("authorization", f"Bearer {_text(self._token)}"),)
        async with grpc.aio.secure_channel(self._target, credentials, options=self._options()) as channel:
            stream = link_pb2_grpc.NodeLinkStub(channel).Connect(metadata=metadata)
            welcome = asyncio.Event()
            sending = asyncio.create_task(self._send(stream, welcome))
            try:
                async for message in stream:
                    if not self.connected:
                        log.info("link up", scheduler=self._target)
                    self.connected = True
                    welcome.set()
                    self._receive(message)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        log.info("link ended by the scheduler", scheduler=self._target)
        self._leader = ""

    async def _send(self, stream: Any, welcome: asyncio.Event) -> None:
        """Hello, the newest report, then what comes. A message leaves the queue once it was written.

        Nothing follows hello before it is answered: a write into a refusal would hide why we were refused.
        """
        self._newest = self._sent
        await stream.write(self._numbered(link_pb2.NodeMessage(hello=codec.hello_to_wire(self._hello))))
        await welcome.wait()
        while True:
            if self._newest is not None:
                report, self._newest = self._newest, None
                await stream.write(self._numbered(link_pb2.NodeMessage(report=codec.report_to_wire(report))))
            while self._outgoing:
                message = self._outgoing[0]
                await stream.write(self._numbered(message))
                if self._outgoing and self._outgoing[0] is message:
                    self._outgoing.popleft()
            for saved in tuple(self._checkpoints.values()):
                checkpoint = codec.checkpoint_to_wire(saved, time.time())
                await stream.write(self._numbered(link_pb2.NodeMessage(checkpoint=checkpoint)))
                if self._checkpoints.get(saved.pod_uid) is saved:
                    del self._checkpoints[saved.pod_uid]
            self._wake.clear()
            if not self._outgoing and not self._checkpoints and self._newest is None:
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
        if message.HasField("withdrawal"):
            self._on_withdrawn(message.withdrawal.pod_uid)


def advice(code: grpc.StatusCode, detail: str, access: LinkAccess) -> str:
    """Whose fault a lost link is and what mends it; empty where waiting does."""
    match code:
        case grpc.StatusCode.UNAUTHENTICATED:
            return f"the token in {access.token} is unknown, expired or made for another audience: check its volume"
        case grpc.StatusCode.PERMISSION_DENIED:
            return f"the token in {access.token} is not that of this node's agent: check service account and node name"
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return "the scheduler's limits: a message above 1 MiB, too many streams, or an agent that does not read"
        case grpc.StatusCode.UNAVAILABLE if "certificate has expired" in detail:
            return (
                "renew the scheduler's certificate: `sublet admission` does, unless it is down or --certificates=files"
            )
        case grpc.StatusCode.UNAVAILABLE if "CERTIFICATE_VERIFY_FAILED" in detail or "Hostname Verification" in detail:
            host = access.address.rpartition(":")[0]
            return (
                f"{access.ca} must hold the authority that signed the scheduler's certificate, which must name {host}"
            )
        case grpc.StatusCode.INTERNAL if detail == STATUS_LOST:
            return "the scheduler refused before hello was written, which hides why; the next attempt tells"
        case _:
            return ""


def _leader_named(error: grpc.aio.AioRpcError) -> str:
    """HOST:PORT from a scheduler that does not lead; empty from any other, and where it is no address."""
    if error.code() is not grpc.StatusCode.UNAVAILABLE:
        return ""
    named = next((str(value) for key, value in error.trailing_metadata() or () if key == _LEADER_KEY), "")
    return named if _ADDRESS.fullmatch(named) else ""


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
