"""Whose child an object is: controllers adopt orphans that their selector matches, and release what it matches no more.

As kube-controller-manager's `controller_ref_manager.go`. A controller that is being deleted adopts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from embedded.apiserver.apimachinery.objects import (
    Object,
    being_deleted,
    controller_of,
    dig,
    name_of,
    namespace_of,
    uid_of,
)
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.selectors import Filter, Selector, admits, parse_label_selector
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Change, Event, Record


def owner_reference(rtype: ResourceType, owner: Object) -> Object:
    """The reference of an object its controller makes."""
    return {
        "apiVersion": rtype.api_version,
        "kind": rtype.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


class Children:
    """The children of one kind that controllers of another kind have; hears of every change of a child."""

    def __init__(self, resources: Resources, parent: ResourceType, child: ResourceType) -> None:
        self._resources = resources
        self._parent = parent
        self._child = child
        self._orphans: dict[str, set[str]] = {}  # namespace → names

    def children(self, owner: Object) -> list[Record]:
        """Those of this owner, in the order of their names, once orphans are adopted and strangers released."""
        selector = parse_label_selector(dig(owner, "spec.selector"))
        if not selector:
            return []
        if not being_deleted(owner):
            self._adopt(owner, selector)
        ours = self._named(uid_of(owner))
        if not being_deleted(owner):
            for record in ours:
                if not admits(selector, record.labels):
                    self._release(record, uid_of(owner))
        return sorted((each for each in ours if admits(selector, each.labels)), key=lambda record: record.key)

    def _named(self, uid: str) -> list[Record]:
        store = self._resources.store
        places = (place for place in store.children(uid) if place[0] == self._child.id)
        found = [record for place in places if (record := store.get(*place)) is not None]
        return [record for record in found if self._controller(record) == uid]

    def _controller(self, record: Record) -> str | None:
        """The uid of the owner in charge. Where there is one alone, that is seen without decoding the object."""
        if len(record.owners) == 1 and b'"controller":true' in record.body:
            return record.owners[0]
        if not record.owners:
            return None
        return (controller_of(self._resources.decoded(self._child, record)) or {}).get("uid")

    def _adopt(self, owner: Object, selector: Selector) -> None:
        namespace, reference = namespace_of(owner), owner_reference(self._parent, owner)
        for name in sorted(self._orphans.get(namespace, ())):
            record = self._resources.store.get(self._child.id, namespace, name)
            if record is None or record.deleting or self._controller(record) is not None:
                continue
            if admits(selector, record.labels):
                self._set_owners(record, lambda owners: [*owners, reference])

    def _release(self, record: Record, uid: str) -> None:
        self._set_owners(record, lambda owners: [each for each in owners if each["uid"] != uid])

    def _set_owners(self, record: Record, change: Callable[[list[Object]], list[Object]]) -> None:
        """What is refused stays as it is until it changes."""

        def changed(obj: Object) -> Object:
            obj["metadata"]["ownerReferences"] = change(obj["metadata"].get("ownerReferences") or [])
            return obj

        try:
            self._resources.update(self._child, *record.key, changed)
        except StatusError:
            return

    # -- who has to look ---------------------------------------------------------------------------------------

    def tell(self, event: Event, waiting: WorkQueue) -> None:
        """Its owners have to look, those from before too; at an orphan, whoever may want it."""
        record, orphans = event.record, self._orphans.setdefault(event.record.namespace, set())
        orphaned = event.change is not Change.DELETED and self._controller(record) is None
        (orphans.add if orphaned else orphans.discard)(record.name)
        owners = {*record.owners, *(event.old.owners if event.old else ())}
        for place in (self._resources.store.place_of(uid) for uid in owners):
            if place is not None and place[0] == self._parent.id:
                waiting.now(place[1:])
        if orphaned:
            for key in self._wanting(record):
                waiting.now(key)

    def _wanting(self, record: Record) -> Iterator[Key]:
        for parent in self._resources.objects(self._parent, Filter(record.namespace)):
            selector = parse_label_selector(dig(parent, "spec.selector"))
            if selector and admits(selector, record.labels):
                yield (record.namespace, name_of(parent))
