"""Kueue's objects beside its queues: flavours, the names by which namespaces reach queues, priorities, topologies.

An object that cannot be read is told once, and what it said before goes on counting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kube import objects
from kube.dialects.queues import kueue_objects, kueue_statuses
from kube.informer import Change, ChangeKind
from model.fault import ConfigurationFault
from model.flavor.resource_flavor import ResourceFlavor, SubmissionQueue

_READERS: dict[type, Callable[[Any], Any]] = {
    objects.ResourceFlavor: kueue_objects.flavor,
    objects.LocalQueue: kueue_objects.submission_queue,
    objects.WorkloadPriorityClass: kueue_objects.priority,
    objects.Topology: kueue_objects.levels,
}


class KueueCache:
    """`refuse` is told (kind and key, metadata, message) of what cannot be read, `settled` the same of
    all else.
    """

    def __init__(self, refuse: Callable[[str, objects.Metadata, str], None], settled: Callable[[str], None]) -> None:
        self._refuse = refuse
        self._settled = settled
        self._kinds: dict[type, dict[str, Any]] = {kind: {} for kind in _READERS}
        self._metadata: dict[str, objects.Metadata] = {}
        self._statuses: dict[str, Any] = {}

    @staticmethod
    def reads(item: object) -> bool:
        """Whether objects of this kind belong here."""
        return type(item) in _READERS

    @property
    def flavors(self) -> Mapping[str, ResourceFlavor]:
        """By name."""
        return self._kinds[objects.ResourceFlavor]

    @property
    def submissions(self) -> Mapping[str, SubmissionQueue]:
        """By `namespace/name`."""
        return self._kinds[objects.LocalQueue]

    @property
    def priorities(self) -> Mapping[str, int]:
        """Of WorkloadPriorityClasses, by name."""
        return self._kinds[objects.WorkloadPriorityClass]

    @property
    def topologies(self) -> Mapping[str, tuple[str, ...]]:
        """Node label keys from the widest level to the narrowest, by name."""
        return self._kinds[objects.Topology]

    def source(self, key: str) -> tuple[objects.Metadata, Any] | None:
        """Metadata and status of a LocalQueue; None where there is none."""
        return (self._metadata[key], self._statuses.get(key)) if key in self._metadata else None

    def consumed(self, key: str) -> tuple[Mapping[str, int], float]:
        """What a LocalQueue had used over time, and when that was written (Unix time)."""
        return kueue_statuses.read_consumed(self._statuses.get(key))

    def apply(self, change: Change[Any]) -> bool:
        """Take in one change; whether anything that others read is another by it."""
        item, kind = change.object, type(change.object)
        key = f"{item.metadata.namespace}/{item.metadata.name}" if item.metadata.namespace else item.metadata.name
        known, where = self._kinds[kind], f"{kind.__name__} {key}"
        before = known.get(key)
        self._keep_source(change, key)
        if change.kind is ChangeKind.DELETED:
            known.pop(key, None)
            self._settled(where)
            return before is not None
        try:
            known[key] = _READERS[kind](item)
        except ConfigurationFault as fault:
            self._refuse(where, item.metadata, str(fault))
            return False
        self._settled(where)
        return bool(known[key] != before)

    def _keep_source(self, change: Change[Any], key: str) -> None:
        if not isinstance(change.object, objects.LocalQueue):
            return
        if change.kind is ChangeKind.DELETED:
            self._metadata.pop(key, None)
            self._statuses.pop(key, None)
        else:
            self._metadata[key], self._statuses[key] = change.object.metadata, change.object.status
