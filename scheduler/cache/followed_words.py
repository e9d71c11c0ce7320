"""Followed words: of objects by which many pods go, such as a PodGroup, or the Job that they were made for.

Each word that says something new has all these pods gone through, and whoever may change such an object does so in a
few bytes, and as often as the API server takes it. So of those that are known the newest word is read, in a tenth of
the time for each namespace. One that is not known is read at once: by what it says its pods go together, or do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from kube.informer import Change, ChangeKind

_REST = 10.0
"""For each second that a word takes: nine others are for all else."""
_AT_ONCE_SECONDS = 1.0
"""So much may be owed: objects of two thousand pods all told are read without a rest."""

_Key: TypeAlias = tuple[type, str]


class FollowedWords:
    """By namespace; times are seconds of the clock that `now` is told of."""

    def __init__(self) -> None:
        self._known: set[tuple[str, _Key]] = set()
        self._until: dict[str, float] = {}
        self._waiting: dict[str, dict[_Key, list[Change[Any]]]] = {}

    def keep(self, change: Change[Any], now: float) -> bool:
        """Whether the word is kept for later; else it is to be read now."""
        namespace, key = _place(change)
        waits = key in self._waiting.get(namespace, {})
        if not waits and (self._rest(namespace, now) <= 0 or (namespace, key) not in self._known):
            self._read(change)
            return False
        held = self._waiting.setdefault(namespace, {}).setdefault(key, [])
        # Whoever deletes an object and makes it anew says two things.
        gone = held[:1] if held and held[0].kind is ChangeKind.DELETED else []
        held[:] = [change] if change.kind is ChangeKind.DELETED else [*gone, change]
        return True

    def went_through(self, namespace: str, seconds: float, now: float) -> None:
        """A word of that namespace took about so long."""
        self._until = {name: until for name, until in self._until.items() if until > now}
        if seconds:
            self._until[namespace] = self._until.get(namespace, now) + seconds * _REST

    def take(self, now: float) -> Iterator[Change[Any]]:
        """Those for which it is time; each is to be read, and accounted for, before the next is asked for."""
        for namespace in tuple(self._waiting):
            while namespace in self._waiting and self._rest(namespace, now) <= 0:
                waiting = self._waiting[namespace]
                held = waiting.pop(next(iter(waiting)))
                if not waiting:
                    del self._waiting[namespace]
                for change in held:
                    self._read(change)
                    yield change

    def next_due(self) -> float | None:
        """When one may be read; None where none waits."""
        return min((self._until.get(name, 0.0) - _AT_ONCE_SECONDS for name in self._waiting), default=None)

    def _rest(self, namespace: str, now: float) -> float:
        return self._until.get(namespace, now) - now - _AT_ONCE_SECONDS

    def _read(self, change: Change[Any]) -> None:
        if change.kind is ChangeKind.DELETED:
            self._known.discard(_place(change))
        else:
            self._known.add(_place(change))


def _place(change: Change[Any]) -> tuple[str, _Key]:
    metadata = change.object.metadata
    return metadata.namespace, (type(change.object), metadata.name)
