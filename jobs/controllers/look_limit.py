"""How much of the time looks at the jobs of one namespace may take: a look goes through all pods of its job, and reads
all that its spec says.

Whoever may change a job, or a pod of it, has it looked at as often as he likes, and makes jobs of ten thousand pods, or
of half a megabyte.
"""

from __future__ import annotations

_SECONDS_A_POD = 1.5e-4
"""About ten times as long as a look takes for each."""
_SECONDS_A_BYTE, _SHORT_BYTES = 8e-7, 16 << 10
"""The same for each byte of a long spec, of which some say as much in twelve bytes as others in a hundred."""
_AT_ONCE_SECONDS = 1.0
"""So much of it may be owed: jobs of thousands of pods all told are looked at without a rest."""


class LookLimit:
    """By namespace; times are seconds of a clock that is not set. Who owes more rests until then."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def rest(self, namespace: str, now: float) -> float:
        """Seconds before the next look at a job there; 0 where there may be one."""
        return max(0.0, self._until.get(namespace, now) - now - _AT_ONCE_SECONDS)

    def looked(self, namespace: str, pods: int, now: float, *, spec_bytes: int = 0) -> None:
        """A look went through so many pods, and read a spec of so many bytes."""
        self._until = {name: until for name, until in self._until.items() if until > now}
        seconds = pods * _SECONDS_A_POD + max(0, spec_bytes - _SHORT_BYTES) * _SECONDS_A_BYTE
        if seconds:
            self._until[namespace] = self._until.get(namespace, now) + seconds
