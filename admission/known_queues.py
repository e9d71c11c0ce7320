"""Queues that admission knows of, by name, with what their statuses say of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admission.core.queue_rules import KnownQueue
from kube.dialects.queues.reading import AnyQueue, QueueObject, in_force, read
from kube.dialects.queues.use import QueueUse, use_of
from kube.informer import Change, ChangeKind


class KnownQueues:
    """Objects of all kinds that define queues; one that cannot be read is none."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[QueueObject, QueueUse]] = {}
        self._view: Mapping[str, KnownQueue] | None = None

    def apply(self, change: Change[Any]) -> None:
        """Take in one change."""
        found = read(change.object)
        self._view = None
        if change.kind is ChangeKind.DELETED:
            self._objects.pop(found.where, None)
        else:
            self._objects[found.where] = (found, use_of(change.object))

    def add(self, source: AnyQueue) -> None:
        """One that was asked for; what was heard of it is newer."""
        found = read(source)
        if found.where not in self._objects:
            self._objects[found.where], self._view = (found, use_of(source)), None

    def view(self) -> Mapping[str, KnownQueue]:
        """By the names of queues; of objects with one name the one that counts."""
        if self._view is None:
            chosen = in_force(each for each, _ in self._objects.values())
            self._view = {name: _known(each, self._objects[each.where][1]) for name, each in chosen.items()}
        return self._view


def _known(found: QueueObject, use: QueueUse) -> KnownQueue:
    assert found.queue is not None  # of those in force
    return KnownQueue(found.queue, found.where, use.running, use.waiting, use.used)
