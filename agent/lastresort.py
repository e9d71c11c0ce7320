"""The kill of last resort: one prepared victim when memory is about to run out, then wait until it must be gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from agent.core.watch import Kill, LastResort, dying_seconds, short_of_memory
from model.fault import Fault


class Memory(Protocol):
    """Levels as the kernel counts them now, in bytes; None where they cannot be told."""

    @property
    def unreadable(self) -> int: ...

    def available(self) -> int | None: ...

    def kubepods_charge(self) -> int | None: ...

    def kubepods_inactive_file(self) -> int | None: ...

    def close(self) -> None: ...


class LastResortKill:
    """`kill` ends all processes of a cgroup and says how many it reached; 0 is a victim that had died already.

    Each prepared victim is killed once, however often the same one is prepared.
    """

    def __init__(self, memory: Memory, kill: Callable[[str], int]) -> None:
        self.memory = memory
        self._kill = kill
        self._tried: frozenset[str] = frozenset()
        self._quiet_until = float("-inf")
        self.failed_kills = 0

    def look(self, prepared: LastResort | None, monotonic_seconds: float, at_seconds: float) -> Kill | None:
        """Kill one victim if memory is short now; None where nobody was killed."""
        if prepared is None or monotonic_seconds < self._quiet_until:
            return None
        self._tried &= {victim.uid for victim in prepared.victims}
        left = self._left_if_short(prepared)
        if left is None:
            return None
        for victim in prepared.victims:
            if victim.uid in self._tried:
                continue
            self._tried |= {victim.uid}
            if reached := self._reach(victim.cgroup):
                self._quiet_until = monotonic_seconds + dying_seconds(victim.frees_bytes)
                return Kill(victim, at_seconds, monotonic_seconds, left, reached)
        return None

    def _left_if_short(self, prepared: LastResort) -> int | None:
        """memory.stat is dear: it is read only where the whole charge alone would be too much."""
        limited = prepared.kubepods_room_bytes is not None
        available = self.memory.available()
        charge = self.memory.kubepods_charge() if limited else None
        left = short_of_memory(prepared, available, charge, 0)
        if left is None or charge is None:
            return left
        inactive = self.memory.kubepods_inactive_file()
        return short_of_memory(prepared, available, charge if inactive is not None else None, inactive or 0)

    def _reach(self, cgroup: str) -> int:
        try:
            return self._kill(cgroup)
        except (OSError, ValueError, Fault):
            self.failed_kills += 1
            return 0
