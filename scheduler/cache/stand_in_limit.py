"""How many stand-ins a namespace has, and how often they are made: a job of a few hundred bytes that waits whole asks
for thousands, makes none of the objects that an API server would count, and is changed by a few bytes.
"""

from __future__ import annotations

MOST = 20_000
"""Of one namespace, about 1 kB each. Jobs of 10,000 pods are the largest there are."""
_A_SECOND = 2500
"""Made for one namespace, once it had as many as it may have at once: a tenth of the scheduler's time."""


class StandInLimit:
    """By `namespace/name` of Workloads. Those for which there is no room, or whose namespace had so many made a moment
    ago, wait in the order in which they asked; smaller ones may go before them.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._taken: dict[str, dict[str, int]] = {}
        self._waiting: dict[str, dict[str, int]] = {}
        self._made: dict[str, tuple[float, float]] = {}

    def take(self, key: str, count: int, now: float) -> bool:
        """Whether so many may be made at Unix time `now`; else it waits."""
        namespace = key.partition("/")[0]
        made = self._made_lately(namespace, now)
        if not self.fits(key, count) or made >= self._most:
            self._waiting.setdefault(namespace, {})[key] = count
            return False
        self._forget(self._waiting, key)
        self._taken.setdefault(namespace, {})[key] = count
        self._made[namespace] = made + count, now
        return True

    def give_back(self, key: str) -> None:
        """Those of this Workload are gone, and none are asked for."""
        self._forget(self._taken, key)
        self._forget(self._waiting, key)

    def next(self, namespace: str, now: float) -> str | None:
        """The first that waits there and may have its own by now."""
        waiting = self._waiting.get(namespace)
        if not waiting or self._made_lately(namespace, now) >= self._most:
            return None
        return next((key for key, count in waiting.items() if self.fits(key, count)), None)

    def waiting(self) -> tuple[str, ...]:
        """Namespaces in which some wait."""
        return tuple(self._waiting)

    def next_due(self) -> float | None:
        """Unix time at which one that has room may have its own, None where none waits for time alone."""
        return min((self._due(name) for name in self._waiting if self._has_room(name)), default=None)

    def fits(self, key: str, count: int) -> bool:
        """Whether its namespace has room for so many."""
        return sum(self._taken.get(key.partition("/")[0], {}).values()) + count <= self._most

    def _has_room(self, namespace: str) -> bool:
        return any(self.fits(key, count) for key, count in self._waiting[namespace].items())

    def _due(self, namespace: str) -> float:
        made, at = self._made.get(namespace, (0.0, 0.0))
        return at + max(0.0, made - self._most + 1) / _A_SECOND

    def _made_lately(self, namespace: str, now: float) -> float:
        """What was made less what time allows; nothing is kept of a namespace that made none for a while."""
        made, at = self._made.get(namespace, (0.0, now))
        left = made - max(0.0, now - at) * _A_SECOND
        if left <= 0:
            self._made.pop(namespace, None)
            return 0.0
        return left

    @staticmethod
    def _forget(found: dict[str, dict[str, int]], key: str) -> None:
        namespace = key.partition("/")[0]
        own = found.get(namespace, {})
        own.pop(key, None)
        if not own:
            found.pop(namespace, None)
