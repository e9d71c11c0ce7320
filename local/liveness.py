"""Liveness of a running program: pure, from one probe after the other. Times are monotonic seconds.

A busy machine is not a program that hangs: what counts is only what was measured while this process itself ran in time,
and a program is given up after a silence that no load explains.
"""

from __future__ import annotations

import msgspec


class LivenessPolicy(msgspec.Struct, frozen=True):
    """A probe each `period`, which waits for `answer`; a program is given up after `misses` in a row and `silence`."""

    period_seconds: float = 5.0
    answer_seconds: float = 10.0
    silence_seconds: float = 60.0
    misses: int = 5


class Probe(msgspec.Struct, frozen=True):
    """One probe: when it began and ended, and why it counts as missed; empty where the program answered."""

    began: float
    ended: float
    why: str = ""


class Liveness:
    """Judges the probes of one run of a program, in order."""

    def __init__(self, patience: LivenessPolicy, now: float) -> None:
        self._patience = patience
        self._last_ended = now
        self._since = now
        self._misses = 0

    def judge(self, probe: Probe) -> str:
        """Why the program is to be ended, in words for a person; empty while it is not."""
        late, self._last_ended = self._held_up(probe), probe.ended
        if late or not probe.why:
            self._misses = 0
            return ""
        self._since = self._since if self._misses else probe.began
        self._misses += 1
        silent = probe.ended - self._since
        if self._misses < self._patience.misses or silent < self._patience.silence_seconds:
            return ""
        return f"has not answered for {silent:.0f} s ({probe.why})"

    def _held_up(self, probe: Probe) -> bool:
        """Whether this process or the whole machine stood still meanwhile: then silence proves nothing."""
        slack = self._patience.period_seconds
        paused = probe.began - self._last_ended > self._patience.period_seconds + slack
        return paused or probe.ended - probe.began > self._patience.answer_seconds + slack
