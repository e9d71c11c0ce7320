"""The kill of last resort: one prepared victim when memory is about to run out, then wait until it is gone."""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec.structs import replace

from agent.core.limit.watch import (
    LONGEST_DYING_SECONDS,
    Kill,
    LastResort,
    PreparedVictim,
    dying_seconds,
    short_of_memory,
)
from model.fault import Fault

_FUTILE_SECONDS = 1.0
_STUCK_SECONDS = 30.0
_STANDSTILL_SECONDS = 1.0
"""A victim that gives nothing back for so long is not waited for: whoever runs ends in pieces, however slowly."""
_LESS_BYTES = 1 << 20
_MOST_STUCK = 64


class MemorySource(Protocol):
    """Levels as the kernel counts them now, in bytes; None where they cannot be told."""

    @property
    def unreadable(self) -> int: ...

    def available(self) -> int | None: ...

    def kubepods_charge(self) -> int | None: ...

    def kubepods_page_cache(self) -> int | None: ...

    def held(self, cgroup: str) -> int | None: ...

    def close(self) -> None: ...


class ProcessKiller(Protocol):
    """Called, it ends all processes of a cgroup and says how many it reached; 0 is a victim that had died already.

    Nobody waits for it: it says 1 while it is still at it, and of its processes None where they cannot be told yet.
    """

    def prepare(self) -> None: ...

    def __call__(self, cgroup: str) -> int: ...

    def processes(self, cgroup: str) -> frozenset[int] | None: ...

    def close(self) -> None: ...


class _Dying(msgspec.Struct, frozen=True):
    """The last victim, when it was killed, its processes then (None: not told), until when its memory is waited for
    in any case, what it held when that became less, and when that was."""

    victim: PreparedVictim
    processes: frozenset[int] | None
    killed_seconds: float
    until_seconds: float
    held_bytes: int
    less_seconds: float

    def followed(self, held: int | None, now: float) -> _Dying:
        """With what it holds now; what cannot be told may have become less."""
        if held is not None and held > self.held_bytes - _LESS_BYTES:
            return self
        return replace(self, held_bytes=self.held_bytes if held is None else held, less_seconds=now)


class LastResortKill:
    """One victim at a time; one that the kubelet starts again where it was may be killed again.

    Whoever could not be reached is passed over for a second, and half a minute who does not end although it was: as
    soon as it stands still, for processes that trace each other do, and keep the memory that they share. Once it did it
    is not waited for again. Nobody dies where that would change nothing: `futile_looks` counts how often it was so.
    """

    def __init__(self, memory: MemorySource, kill: ProcessKiller) -> None:
        self.memory = memory
        self._kill = kill
        self._dying: _Dying | None = None
        self._passed_over: dict[str, float] = {}
        # By uid: the processes that did not end (None: not told).
        self._stuck: dict[str, frozenset[int] | None] = {}
        self.failed_kills = 0
        self.futile_looks = 0

    def look(self, prepared: LastResort | None, monotonic_seconds: float, at_seconds: float) -> Kill | None:
        """Kill one victim if memory is short now; None where nobody was killed."""
        if prepared is None:
            return None
        self._kill.prepare()
        if self._waits(monotonic_seconds):
            return None
        left = self._left_if_short(prepared)
        if left is None:
            return None
        resting = {uid: until for uid, until in self._passed_over.items() if until > monotonic_seconds}
        self._passed_over = resting
        for victim in self._helpful([each for each in prepared.victims if each.uid not in resting], left, prepared):
            if reached := self._killed(victim, monotonic_seconds):
                return Kill(victim, at_seconds, monotonic_seconds, left, reached)
        return None

    def close(self) -> None:
        self.memory.close()
        self._kill.close()

    def _helpful(self, victims: list[PreparedVictim], left: int, prepared: LastResort) -> list[PreparedVictim]:
        """Those that hold anything now, where all of them together hold enough; much may have come or gone since they
        were prepared."""
        held = {victim.uid: self._held(victim) for victim in victims}
        if sum(held.values()) * 100 < left * prepared.least_help_pct:
            self.futile_looks += bool(victims)
            return []
        return [victim for victim in victims if held[victim.uid] > 0]

    def _held(self, victim: PreparedVictim) -> int:
        """What it held when it was prepared, where that cannot be told now."""
        held = self.memory.held(victim.cgroup)
        return victim.frees_bytes if held is None else held

    def _waits(self, now: float) -> bool:
        """The last victim may still give memory back: what is short now may not be in a moment."""
        dying = self._dying
        if dying is None:
            return False
        if now < dying.until_seconds:
            return True
        lives = _live(dying.processes, self._kill.processes(dying.victim.cgroup))
        if lives:
            self._dying = dying = dying.followed(self.memory.held(dying.victim.cgroup), now)
        until = min(dying.less_seconds + _STANDSTILL_SECONDS, dying.killed_seconds + LONGEST_DYING_SECONDS)
        if lives and now < until:
            return True
        if lives:
            self._passed_over[dying.victim.uid] = now + _STUCK_SECONDS
            self._stuck[dying.victim.uid] = dying.processes
            if len(self._stuck) > _MOST_STUCK:
                del self._stuck[next(iter(self._stuck))]
        self._dying = None
        return False

    def _left_if_short(self, prepared: LastResort) -> int | None:
        """memory.stat is dear: it is read only where the whole charge alone would be too much."""
        limited = prepared.kubepods_room_bytes is not None
        available = self.memory.available()
        charge = self.memory.kubepods_charge() if limited else None
        left = short_of_memory(prepared, available, charge, 0)
        if left is None or charge is None:
            return left
        cache = self.memory.kubepods_page_cache()
        return short_of_memory(prepared, available, charge if cache is not None else None, cache or 0)

    def _killed(self, victim: PreparedVictim, now: float) -> int:
        held = max(victim.frees_bytes, self._held(victim))
        processes = self._kill.processes(victim.cgroup)
        reached = self._reach(victim.cgroup)
        if victim.uid in self._stuck and _live(self._stuck[victim.uid], processes):
            self._passed_over[victim.uid] = now + _STUCK_SECONDS
            return 0
        if reached:
            self._dying = _Dying(victim, processes, now, now + dying_seconds(held), held, now)
        else:
            self._passed_over[victim.uid] = now + _FUTILE_SECONDS
        return reached

    def _reach(self, cgroup: str) -> int:
        try:
            return self._kill(cgroup)
        except (OSError, ValueError, Fault):
            self.failed_kills += 1
            return 0


def _live(killed: frozenset[int] | None, found: frozenset[int] | None) -> bool:
    """Whether some of those that were killed are there; where either is not known, anybody counts as one of them."""
    if killed is None or found is None:
        return found is None or bool(found)
    return not killed.isdisjoint(found)
