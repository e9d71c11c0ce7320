"""Bounded connections of a server, and the connection that is closed when one more comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from enum import IntEnum
from typing import Generic, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)


class ConnectionStage(IntEnum):
    """How far a connection has come; those that have come the least far are cut off first."""

    CLOSING = 0
    """It has been answered for the last time, and holds its buffers until its peer says goodbye, too."""
    GREETING = 1
    """Its handshake is not finished."""
    SILENT = 2
    """It has not sent a request yet."""
    IDLE = 3
    """It has been answered, and has sent nothing since."""
    BUSY = 4


class ConnectionBounds(msgspec.Struct, frozen=True):
    """Connections at once, and among them those that may be in their handshake."""

    connections: int
    greetings: int


class _Member(msgspec.Struct):
    peer: str
    stage: ConnectionStage
    since_seconds: float


class ConnectionLimit(Generic[K]):
    """The members by stage, each since when; times are the caller's.

    One more than the bounds costs one of those that have come the least far its place: the oldest of whichever peer has
    most of them, so that a peer that floods keeps itself out first. Not safe to be used by several threads at once.
    """

    def __init__(self, bounds: ConnectionBounds) -> None:
        self.bounds = bounds
        self._members: dict[K, _Member] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._members))

    def enter(self, key: K, peer: str, now_seconds: float) -> list[K]:
        """One more, in its handshake; returns those to cut off for it, which are no members any more."""
        cut = []
        if self._count(ConnectionStage.GREETING) >= self.bounds.greetings:
            cut.append(self._leave_first(ConnectionStage.GREETING))
        if len(self._members) >= self.bounds.connections:
            cut.append(self._leave_first(min(member.stage for member in self._members.values())))
        self._members[key] = _Member(peer, ConnectionStage.GREETING, now_seconds)
        return cut

    def reach(self, key: K, stage: ConnectionStage, now_seconds: float) -> None:
        """A member comes to another stage; one that was cut off meanwhile does not."""
        member = self._members.pop(key, None)
        if member is not None:
            self._members[key] = _Member(member.peer, stage, now_seconds)

    def leave(self, key: K) -> None:
        """A member is gone, or was already."""
        self._members.pop(key, None)

    def leave_all(self, gone: Callable[[K], bool]) -> None:
        """Members that are found to be gone."""
        for key in self:
            if gone(key):
                self.leave(key)

    def at(self, stage: ConnectionStage) -> list[K]:
        """Members at a stage, the oldest first."""
        return [key for key, member in self._members.items() if member.stage is stage]

    def since(self, before_seconds: float, *stages: ConnectionStage) -> list[K]:
        """Members that have been at one of these stages since before that time; no stage: any."""
        members = self._members.items()
        asked = stages or tuple(ConnectionStage)
        return [key for key, member in members if member.since_seconds < before_seconds and member.stage in asked]

    def _count(self, stage: ConnectionStage) -> int:
        return sum(member.stage is stage for member in self._members.values())

    def _leave_first(self, stage: ConnectionStage) -> K:
        there = {key: member.peer for key, member in self._members.items() if member.stage is stage}
        peers = Counter(there.values())
        first = max(there, key=lambda key: peers[there[key]])
        self.leave(first)
        return first
