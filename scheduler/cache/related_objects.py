"""Related objects that filters, preemption and gangs read: volumes, namespaces, budgets, CPUs, priorities, topology.

An object that cannot be read is left out and told; what depends on it waits, as for one that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kube import objects
from kube.dialects.gangs import networktopology
from kube.dialects.koordinator.cpubinding import node_cpus
from kube.dialects.upstream import core_objects, storage
from kube.informer import Change, ChangeKind
from model.budget import DisruptionBudget
from model.fault import ConfigurationFault
from model.priority import PriorityClass
from scheduler.core.snapshot.snapshot import RelatedObjects

_FOR_FILTERS: tuple[type, ...] = (
    objects.PersistentVolumeClaim,
    objects.PersistentVolume,
    objects.Namespace,
    objects.NodeResourceTopology,
)


class RelatedObjectsCache:
    """Every kind by `namespace/name`, or name; `refuse` is told (kind and key, metadata, message)."""

    def __init__(self, refuse: Callable[[str, objects.Metadata, str], None]) -> None:
        self.layers: dict[str, networktopology.Layer] = {}
        self._refuse = refuse
        self._kinds: dict[type, tuple[dict[str, Any], Callable[[Any], Any]]] = {
            objects.PersistentVolumeClaim: ({}, storage.claim),
            objects.PersistentVolume: ({}, storage.volume),
            objects.Namespace: ({}, core_objects.namespace_labels),
            objects.PodDisruptionBudget: ({}, core_objects.budget),
            objects.ClusterNetworkTopology: ({}, networktopology.layers),
            objects.NodeResourceTopology: ({}, node_cpus),
            objects.PriorityClass: ({}, core_objects.priority_class),
        }
        self._view: RelatedObjects | None = None
        self._budgets: tuple[DisruptionBudget, ...] | None = None

    @property
    def view(self) -> RelatedObjects:
        """What filters read; the same value until something of it changes."""
        if self._view is None:
            claims, volumes, namespaces, cpus = (dict(self._kinds[kind][0]) for kind in _FOR_FILTERS)
            self._view = RelatedObjects(claims, volumes, namespaces, cpus)
        return self._view

    @property
    def budgets(self) -> tuple[DisruptionBudget, ...]:
        """In order of namespace and name; the same value until one changes."""
        if self._budgets is None:
            found = self._kinds[objects.PodDisruptionBudget][0]
            self._budgets = tuple(found[key] for key in sorted(found))
        return self._budgets

    @property
    def classes(self) -> Mapping[str, PriorityClass]:
        """By name."""
        return self._kinds[objects.PriorityClass][0]

    def apply(self, change: Change[Any]) -> bool:
        """Take in one change; True where something that did not fit may fit by it."""
        known, read = self._kinds[type(change.object)]
        key = _key(change.object.metadata)
        before = known.pop(key, None)
        if change.kind is not ChangeKind.DELETED:
            try:
                known[key] = read(change.object)
            except ConfigurationFault as fault:
                self._refuse(f"{type(change.object).__name__} {key}", change.object.metadata, str(fault))
        if known.get(key) == before:
            return False
        self._changed(type(change.object))
        return True

    def reads(self, item: object) -> bool:
        """Whether objects of this kind belong here."""
        return type(item) in self._kinds

    def _changed(self, kind: type) -> None:
        if kind is objects.ClusterNetworkTopology:
            known = self._kinds[kind][0]
            self.layers = {name: layer for key in sorted(known) for name, layer in known[key].items()}
        elif kind is objects.PodDisruptionBudget:
            self._budgets = None
        elif kind in _FOR_FILTERS:
            self._view = None


def _key(metadata: objects.Metadata) -> str:
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
