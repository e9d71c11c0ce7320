"""Sinks of the tick that only pass on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from agent.core.limit.watch import Kill
from agent.ports import Sink, TickResult


class KillRecorder(Protocol):
    """Tells pods and node of a kill."""

    def record_kill(self, kill: Kill) -> None: ...


class KillSink:
    """What the last resort did, to whoever tells of it."""

    def __init__(self, recorder: KillRecorder) -> None:
        self._recorder = recorder

    def take(self, result: TickResult) -> None:
        for kill in result.kills:
            self._recorder.record_kill(kill)


class LinkSink:
    """Everything, to the link, once there is one."""

    def __init__(self, link: Callable[[], Sink | None]) -> None:
        self._link = link

    def take(self, result: TickResult) -> None:
        link = self._link()
        if link is not None:
            link.take(result)
