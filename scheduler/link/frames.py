"""Frames between the scheduling process and its link process.

A frame is a length and one MessagePack value. Both ways a frame carries the newest word on each node and not every
word, so a reader that is busy costs neither side memory: what waits is one value a node.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Generic, TypeVar

import msgspec

from model.decision import Decision
from model.report import CheckpointSaved, EvictionCost, NodeReport, PreemptionNotice

_LENGTH_BYTES = 4
_READ_LIMIT_BYTES = 1 << 20


class Serving(msgspec.Struct, frozen=True):
    """What the link process is started with; addresses are HOST:PORT, the rest paths of files.

    Who may call is said by the file `tokens`, or where that is empty by the API server of `kubeconfig` (empty for
    that of the pod's own service account): tokens for `audience`, and those of agents belong to account `agent`.
    """

    listen: str
    certificate: str
    key: str
    tokens: str
    calls: int
    costs_interval_seconds: float
    console: bool = False
    kubeconfig: str = ""
    audience: str = ""
    agent: str = ""


class LeaderState(msgspec.Struct, frozen=True, array_like=True):
    """Whether this scheduler leads, where the leader serves agents, and where its diagnostics answer on loopback."""

    leading: bool = False
    leader: str = ""
    diagnostics: str = ""


class ServingFault(msgspec.Struct, frozen=True, array_like=True):
    """The three parts of a ConfigurationFault that keeps the link process from serving."""

    where: str
    what: str
    fix: str


class FromLinkProcess(msgspec.Struct, frozen=True, array_like=True):
    """From the link process. `links` are nodes that came (True) or went; `dropped` counts lost decisions."""

    listening: str = ""
    trouble: ServingFault | None = None
    links: dict[str, bool] = {}
    reports: dict[str, NodeReport] = {}
    saved: list[tuple[str, CheckpointSaved]] = []
    decisions: list[tuple[str, Decision]] = []
    dropped: int = 0


class ToLinkProcess(msgspec.Struct, frozen=True, array_like=True):
    """To the link process; `notices` are by pod uid, None where the notice is withdrawn."""

    role: LeaderState | None = None
    costs: dict[str, tuple[EvictionCost, ...]] = {}
    notices: dict[str, tuple[str, PreemptionNotice | None]] = {}


In = TypeVar("In")


class Frames(Generic[In]):
    """One end of the channel: decodes what comes in as `incoming`, encodes anything."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, incoming: type[In]) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = msgspec.msgpack.Decoder(incoming)
        self._encoder = msgspec.msgpack.Encoder()

    @classmethod
    async def over(cls, connection: socket.socket, incoming: type[In]) -> Frames[In]:
        """On a connected stream socket, which belongs to the frames from here on."""
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=_READ_LIMIT_BYTES)
        return cls(reader, writer, incoming)

    async def read(self) -> In | None:
        """The next frame; None once the other side is gone."""
        try:
            length = await self._reader.readexactly(_LENGTH_BYTES)
            payload = await self._reader.readexactly(int.from_bytes(length))
        except (asyncio.IncompleteReadError, OSError):
            return None
        return self._decoder.decode(payload)

    async def write(self, frame: object) -> bool:
        """Waits until the other side keeps up; False once it is gone."""
        payload = self._encoder.encode(frame)
        try:
            self._writer.write(len(payload).to_bytes(_LENGTH_BYTES) + payload)
            await self._writer.drain()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
