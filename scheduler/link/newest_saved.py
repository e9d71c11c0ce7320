"""Newest saved states of pods that wait to be told on: one of each pod and node that tells, and not without end."""

from __future__ import annotations

from collections.abc import Iterable

from model.report import CheckpointSaved

_MOST = 65_536


class NewestSaved:
    """What one node says of a pod never takes the place of what another does; beyond the bound the oldest goes."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], CheckpointSaved] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, told: Iterable[tuple[str, CheckpointSaved]]) -> None:
        """Each by the node that told it."""
        for node, saved in told:
            self._waiting.pop((node, saved.pod_uid), None)
            self._waiting[node, saved.pod_uid] = saved
            if len(self._waiting) > _MOST:
                del self._waiting[next(iter(self._waiting))]

    def take(self) -> list[tuple[str, CheckpointSaved]]:
        """All that waits, which waits no more."""
        waiting, self._waiting = self._waiting, {}
        return [(node, saved) for (node, _), saved in waiting.items()]
