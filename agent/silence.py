"""The dead man's switch: best effort is held at a fixed share while the agent does not beat.

The agent's last ceiling fits the load of its last second, not of the next hour. `sublet agent --guard` is a process of
its own for nodes where that matters; nothing starts it by default. It only ever lowers, until the agent is back.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import structlog

from agent.core.observation import Knob, Missing, Value
from agent.core.standing import looser
from agent.statefile import StateFile
from model.fault import Fault
from model.reason import Reason, words

log = structlog.get_logger()

_RESTING = 0
"""The time of a heartbeat that says: on purpose."""


class Heartbeat:
    """Touched by the agent each tick, so that others see that it lives."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed = False

    def take(self, result: object) -> None:
        """A sink of the tick."""
        self.beat()

    def beat(self) -> None:
        """Never raises: an agent that cannot beat still works, and is held to be silent."""
        self._touch(None)

    def rest(self) -> None:
        """Say in order that nobody limits this node any more, so that the silence to come is none."""
        self._touch((_RESTING, _RESTING))

    def _touch(self, times: tuple[int, int] | None) -> None:
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.utime(descriptor, ns=times) if times else os.utime(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            if not self._failed:
                log.error("the heartbeat cannot be told", path=str(self._path), error=error.strerror)
            self._failed = True


def last_beat(path: Path) -> int | None:
    """When it was, by a clock that may step: good to tell one beat from the next, not to count from; 0 rests."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


class Limiter(Protocol):
    """The guard's own single writer of control files."""

    def read(self, knob: Knob) -> Value | Missing: ...

    def lower(self, knob: Knob, value: int) -> int | None: ...

    def restore(self) -> object: ...


class Guard:
    """One turn a second. `share_us` is the best-effort quota that stands while nothing is heard for `silence_seconds`.

    `state` is the guard's own, not the agent's. An agent that has been beating for as long again has everything in
    hand: what was found is put back, unless the agent has written something else meanwhile.
    """

    def __init__(
        self, quota: Knob, share_us: int, silence_seconds: float, limiter: Limiter, state: StateFile, now: float
    ) -> None:
        self._quota = quota
        self._share_us = share_us
        self._silence = silence_seconds
        self._limiter = limiter
        self._state = state
        self._beat: int | None = None
        self._heard_at = self._silent_at = now
        self._told = ""

    def turn(self, beat: int | None, now: float) -> None:
        """`beat` tells one heartbeat from another, `now` is monotonic: a clock that steps is no silence.

        Nor is the rest of an agent that only observes.
        """
        if beat == _RESTING or (beat is not None and beat != self._beat):
            self._beat, self._heard_at = beat, now
        if now - self._heard_at >= self._silence:
            self._silent_at = now
            self._hold()
        elif self._state.originals and now - self._silent_at >= self._silence:
            self._let_go()

    def _hold(self) -> None:
        was = self._limiter.lower(self._quota, self._share_us)
        if was is not None:
            log.warning(words(Reason.AGENT_SILENT), cgroup=self._quota.cgroup, was=was, now=self._share_us)
        held = self._limiter.read(self._quota)
        if isinstance(held, Missing) or looser(held, self._share_us):
            self._tell_once(f"best effort cannot be held at {self._share_us} us: {held}")

    def _let_go(self) -> None:
        try:
            if self._limiter.read(self._quota) == self._share_us:
                log.info(
                    "the agent is back", effect="what was found is put back", restored=str(self._limiter.restore())
                )
            else:
                log.info("the agent is back", effect="it has written its own ceiling")
                self._state.remove()
        except (OSError, Fault) as error:
            self._tell_once(f"what was found cannot be put back: {error}")

    def _tell_once(self, problem: str) -> None:
        if problem != self._told:
            log.error(problem)
        self._told = problem
