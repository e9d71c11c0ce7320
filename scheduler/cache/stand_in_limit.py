"""How many stand-ins a namespace has: a job of a few hundred bytes that waits whole asks for thousands, and makes none
of the objects that an API server would count.
"""

from __future__ import annotations

MOST = 20_000
"""Of one namespace, about 1 kB each. Jobs of 10,000 pods are the largest there are."""


class StandInLimit:
    """By `namespace/name` of Workloads. Those for which there is no room wait in the order in which they asked; smaller
    ones may go before them.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._taken: dict[str, dict[str, int]] = {}
        self._waiting: dict[str, dict[str, int]] = {}

    def take(self, key: str, count: int) -> bool:
        """Whether there is room for so many; else it waits."""
        namespace = key.partition("/")[0]
        if not self._fits(namespace, count):
            self._waiting.setdefault(namespace, {})[key] = count
            return False
        self._forget(self._waiting, key)
        self._taken.setdefault(namespace, {})[key] = count
        return True

    def give_back(self, key: str) -> None:
        """Those of this Workload are gone, and none are asked for."""
        self._forget(self._taken, key)
        self._forget(self._waiting, key)

    def next(self, namespace: str) -> str | None:
        """The first that waits there and has room by now."""
        waiting = self._waiting.get(namespace, {})
        return next((key for key, count in waiting.items() if self._fits(namespace, count)), None)

    def _fits(self, namespace: str, count: int) -> bool:
        return sum(self._taken.get(namespace, {}).values()) + count <= self._most

    @staticmethod
    def _forget(found: dict[str, dict[str, int]], key: str) -> None:
        namespace = key.partition("/")[0]
        own = found.get(namespace, {})
        own.pop(key, None)
        if not own:
            found.pop(namespace, None)
