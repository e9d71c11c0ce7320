"""Which pods are on which node, kept up to date change by change: no question scans all pods."""

from __future__ import annotations

from embedded.apiserver.apimachinery.resource_types import PODS
from embedded.apiserver.reconciling.work_queue import Key
from embedded.apiserver.storage.records import Change, Event


class PodsByNode:
    """Keys of the pods bound to each node."""

    def __init__(self) -> None:
        self._keys: dict[str, set[Key]] = {}

    def react(self, type_id: str, event: Event) -> None:
        if type_id != PODS.id:
            return
        record = event.record
        if event.change is Change.DELETED:
            self._drop(record.fields["spec.nodeName"], record.key)
        elif node := record.fields["spec.nodeName"]:
            self._keys.setdefault(node, set()).add(record.key)

    def _drop(self, node: str, key: Key) -> None:
        held = self._keys.get(node, set())
        held.discard(key)
        if not held:
            self._keys.pop(node, None)

    def on(self, node: str) -> list[Key]:
        return sorted(self._keys.get(node, ()))
