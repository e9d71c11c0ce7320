"""Deleted pods on a node that is gone: nobody else would ever finish them."""

from __future__ import annotations

from embedded.apiserver.apimachinery.resource_types import NODES, PODS
from embedded.apiserver.reconciling.pods_by_node import PodsByNode
from embedded.apiserver.registry.resources import DeleteOptions, Resources
from embedded.apiserver.storage.records import Change, Event, Record


class OrphanedPods:
    """Finishes deleting pods whose node does not exist, as the pod garbage collector upstream does."""

    def __init__(self, resources: Resources, pods: PodsByNode) -> None:
        self._resources = resources
        self._pods = pods

    def react(self, type_id: str, event: Event) -> None:
        record, gone = event.record, event.change is Change.DELETED
        if type_id == PODS.id and not gone:
            self._end(record)
        elif type_id == NODES.id and gone:
            for key in self._pods.on(record.name):
                held = self._resources.store.get(PODS.id, *key)
                if held is not None:
                    self._end(held)

    def _end(self, seen: Record) -> None:
        store, node = self._resources.store, seen.fields["spec.nodeName"]
        if not (seen.deleting and node) or store.get(NODES.id, "", node) is not None:
            return
        held = store.get(PODS.id, seen.namespace, seen.name)
        if held is not None and held.uid == seen.uid:
            self._resources.delete(PODS, seen.namespace, seen.name, DeleteOptions(grace_seconds=0))
