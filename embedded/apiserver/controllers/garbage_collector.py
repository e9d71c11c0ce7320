"""Garbage collection: dependents of deleted owners, contents of namespaces and definitions that are going away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from embedded.apiserver.apimachinery.objects import Object, being_deleted, dig, namespace_of
from embedded.apiserver.apimachinery.resource_types import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, ResourceType
from embedded.apiserver.apimachinery.selectors import Filter
from embedded.apiserver.controllers.namespace_conditions import terminating_status
from embedded.apiserver.reconciling.event_recorder import record_event
from embedded.apiserver.registry.resources import FOREGROUND, ORPHAN, DeleteOptions, Resources
from embedded.apiserver.registry.strategies import CRD_CLEANUP
from embedded.apiserver.storage.records import Change, Event, Record

_BACKGROUND = DeleteOptions(propagation="Background")
_FOREGROUND = DeleteOptions(propagation="Foreground")
_CONTENT = "kubernetes"  # the finalizer of a namespace that stands for its contents
_DELETED_AT_ONCE = 100  # about 5 ms; requests are answered between one portion and the next


class Collector:
    """Reacts to single changes and gathers which terminating objects are due to `advance`.

    Every reaction is itself a change, so a cascade runs by itself.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._dirty: set[tuple[str, str, str]] = set()

    def react(self, type_id: str, event: Event) -> None:
        record = event.record
        if event.change is not Change.DELETED:
            if record.owners and (event.old is None or event.old.owners != record.owners):
                self._collect(type_id, record.namespace, record.name)
            if record.deleting:
                self._dirty.add((type_id, record.namespace, record.name))
            return
        places = (self._resources.store.place_of(owner) for owner in record.owners)
        self._dirty.update(place for place in places if place)
        if record.namespace:
            self._dirty.add((NAMESPACES.id, "", record.namespace))
        self._dirty.add((CUSTOM_RESOURCE_DEFINITIONS.id, "", type_id))
        _each(self._collect, self._resources.store.children(record.uid))

    @property
    def idle(self) -> bool:
        return not self._dirty

    def take_due(self) -> list[tuple[str, str, str]]:
        """(type, namespace, name) of all that may go further, each once; they are no longer due."""
        due, self._dirty = sorted(self._dirty), set()
        return due

    def _find(self, type_id: str, namespace: str, name: str) -> tuple[ResourceType, Object] | None:
        rtype = self._resources.registry.by_id(type_id)
        obj = None if rtype is None else self._resources.find(rtype, namespace, name)
        return None if rtype is None or obj is None else (rtype, obj)

    def _collect(self, type_id: str, namespace: str, name: str) -> None:
        """Delete an object none of whose owners lives; drop its references to owners that are gone."""
        found = self._find(type_id, namespace, name)
        if found is None or being_deleted(found[1]):
            return
        rtype, obj = found
        owners = dig(obj, "metadata.ownerReferences") or []
        alive = [owner for owner in owners if self._lives(obj, owner)]
        if not alive and owners:
            self._resources.delete(rtype, namespace, name, _BACKGROUND)
        elif len(alive) < len(owners):
            self._set_owners(rtype, obj, alive)

    def _lives(self, dependent: Object, owner: Object) -> bool:
        """Whether an owner exists. One of a kind not served here is somebody else's business."""
        rtype = self._resources.registry.by_kind(owner["apiVersion"], owner["kind"])
        if rtype is None:
            return True
        namespace = namespace_of(dependent)
        if rtype.namespaced and not namespace:
            self._warn_of_namespace(dependent, owner)
            return True  # where it would be, nobody can know
        place = self._resources.store.place_of(owner["uid"])
        if place is not None and rtype.namespaced and place[1] != namespace:
            self._warn_of_namespace(dependent, owner)
        return place == (rtype.id, namespace if rtype.namespaced else "", owner["name"])

    def _warn_of_namespace(self, dependent: Object, owner: Object) -> None:
        namespace = namespace_of(dependent)
        shown = f"{owner['apiVersion']}/{owner['kind']}, namespace: {namespace}, name: {owner['name']}"
        message = f'ownerRef [{shown}, uid: {owner["uid"]}] does not exist in namespace "{namespace}"'
        record_event(
            self._resources, dependent, "OwnerRefInvalidNamespace", message, "garbage-collector-controller", "Warning"
        )

    def _set_owners(self, rtype: ResourceType, obj: Object, owners: list[Object]) -> None:
        def change(held: Object) -> Object:
            held["metadata"]["ownerReferences"] = owners
            return held

        meta = obj["metadata"]
        self._resources.update(rtype, meta.get("namespace", ""), meta["name"], change)

    def advance(self, type_id: str, namespace: str, name: str) -> None:
        """Take one terminating object as far as it goes, or a portion of the way and make it due again."""
        found = self._find(type_id, namespace, name)
        if found is None or not being_deleted(found[1]):
            return
        rtype, obj = found
        finalizers = dig(obj, "metadata.finalizers") or []
        if rtype is NAMESPACES:
            self._empty_namespace(obj)
        elif CRD_CLEANUP in finalizers:
            self._empty_definition(obj)
        elif FOREGROUND in finalizers:
            self._delete_children_first(rtype, obj)
        elif ORPHAN in finalizers:
            self._orphan_children(rtype, obj)

    def _empty_namespace(self, namespace: Object) -> None:
        name = namespace["metadata"]["name"]
        types = [rtype for rtype in self._resources.registry.stored() if rtype.namespaced]
        place = (NAMESPACES.id, "", name)
        emptied = self._emptied(types, Filter(name), place)
        finalizers = dig(namespace, "spec.finalizers") or []
        others = [finalizer for finalizer in finalizers if finalizer != _CONTENT]
        if place not in self._dirty and (others or not emptied):
            self._say_what_is_left(namespace, types)
        if emptied and _CONTENT in finalizers:
            kept = {"finalizers": others}
            self._resources.update(NAMESPACES, "", name, lambda held: {**held, "spec": kept}, subresource="finalize")

    def _say_what_is_left(self, namespace: Object, types: list[ResourceType]) -> None:
        name, store = namespace["metadata"]["name"], self._resources.store
        left = ((rtype, record) for rtype in types for record in store.select(rtype.id, Filter(name)))
        fresh = terminating_status(namespace, left, self._resources.clock())
        if fresh != namespace["status"]:
            self._resources.update(NAMESPACES, "", name, lambda held: {**held, "status": fresh}, subresource="status")

    def _empty_definition(self, definition: Object) -> None:
        name = definition["metadata"]["name"]
        rtype = self._resources.stored_type(name)
        if (
            rtype is None
            or rtype.custom is None  # a built-in type of that name, whose objects were never the definition's
            or self._emptied([rtype], Filter(), (CUSTOM_RESOURCE_DEFINITIONS.id, "", name))
        ):
            self._drop_finalizer(CUSTOM_RESOURCE_DEFINITIONS, definition, CRD_CLEANUP)

    def _emptied(self, types: list[ResourceType], wanted: Filter, container: tuple[str, str, str]) -> bool:
        """Delete a portion of what matches, `container` being due again for the rest; whether nothing is there."""
        store = self._resources.store
        records = ((rtype, record) for rtype in types for record in store.select(rtype.id, wanted))
        left = [(rtype, record) for rtype, record in records if not record.deleting]
        if len(left) > _DELETED_AT_ONCE:
            self._dirty.add(container)
        _each(self._discard, left[:_DELETED_AT_ONCE])
        return not any(True for rtype in types for _ in store.select(rtype.id, wanted))

    def _discard(self, rtype: ResourceType, record: Record) -> None:
        self._resources.delete(rtype, record.namespace, record.name, _BACKGROUND)

    def _children(self, owner: Object) -> list[tuple[ResourceType, Object]]:
        places = self._resources.store.children(owner["metadata"]["uid"])
        return [found for place in places if (found := self._find(*place)) is not None]

    def _delete_children_first(self, rtype: ResourceType, owner: Object) -> None:
        uid = owner["metadata"]["uid"]
        for child_type, child in self._children(owner):
            if not being_deleted(child):
                meta = child["metadata"]
                options = _FOREGROUND if self._resources.store.children(meta["uid"]) else _BACKGROUND
                self._resources.delete(child_type, meta.get("namespace", ""), meta["name"], options)
        blocking = [child for _, child in self._children(owner) if _blocks(child, uid)]
        if not blocking:
            self._drop_finalizer(rtype, owner, FOREGROUND)

    def _orphan_children(self, rtype: ResourceType, owner: Object) -> None:
        uid = owner["metadata"]["uid"]
        for child_type, child in self._children(owner):
            kept = [ref for ref in child["metadata"]["ownerReferences"] if ref["uid"] != uid]
            self._set_owners(child_type, child, kept)
        self._drop_finalizer(rtype, owner, ORPHAN)

    def _drop_finalizer(self, rtype: ResourceType, obj: Object, finalizer: str) -> None:
        def change(held: Object) -> Object:
            held["metadata"]["finalizers"] = [name for name in held["metadata"]["finalizers"] if name != finalizer]
            return held

        meta = obj["metadata"]
        self._resources.update(rtype, meta.get("namespace", ""), meta["name"], change)


def _each(act: Callable[..., object], items: Iterable[tuple[Any, ...]]) -> None:
    """Do it for each. One that fails does not keep the others; what the last failure raised is raised at the end."""
    failure: Exception | None = None
    for item in items:
        try:
            act(*item)
        except Exception as error:
            failure = error
    if failure is not None:
        raise failure


def _blocks(child: Object, owner_uid: str) -> bool:
    references = dig(child, "metadata.ownerReferences") or []
    return any(ref["uid"] == owner_uid and ref.get("blockOwnerDeletion") for ref in references)
