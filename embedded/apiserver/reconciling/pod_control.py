"""Pods that a controller makes from a template: creating them one by one, sending them away, and telling of both."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery.objects import Object, copy, name_of, namespace_of, uid_of
from embedded.apiserver.apimachinery.resource_types import PODS, ResourceType
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.reconciling.adoption import owner_reference
from embedded.apiserver.reconciling.event_recorder import record_event
from embedded.apiserver.registry.resources import DeleteOptions, Resources

_CREATED_AT_ONCE = 20  # pods; requests are answered between one portion and the next


class ControlledPods:
    """The pods of one kind of controller; `component` is who tells of them."""

    def __init__(self, resources: Resources, writes: AdmittedWrites, owner: ResourceType, component: str) -> None:
        self._resources = resources
        self._writes = writes
        self._owner = owner
        self._component = component

    async def create(self, owner: Object, templates: Iterable[Object]) -> str | None:
        """Create pods until one is refused; returns why, None when all were created."""
        for number, template in enumerate(templates):
            if number % _CREATED_AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                made = await self._writes.create(PODS, namespace_of(owner), self._pod(owner, template))
            except StatusError as error:
                self.tell(owner, "FailedCreate", f"Error creating: {error.message}", "Warning")
                return error.message
            self.tell(owner, "SuccessfulCreate", f"Created pod: {name_of(made)}")
        return None

    def _pod(self, owner: Object, template: Object) -> Object:
        meta = template.get("metadata") or {}
        meta = {key: copy(meta[key]) for key in ("annotations", "finalizers", "labels") if meta.get(key)}
        meta |= {"generateName": f"{name_of(owner)}-", "namespace": namespace_of(owner)}
        meta["ownerReferences"] = [owner_reference(self._owner, owner)]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": copy(template["spec"])}

    def delete(self, owner: Object, names: Iterable[str]) -> str | None:
        """Send pods away; returns why the last that could not be sent stays, None when all go."""
        trouble = None
        for name in names:
            try:
                self._resources.delete(PODS, namespace_of(owner), name, DeleteOptions())
            except StatusError as error:
                if error.code == 404:
                    continue
                trouble = error.message
                self.tell(owner, "FailedDelete", f"Error deleting: {error.message}", "Warning")
            else:
                self.tell(owner, "SuccessfulDelete", f"Deleted pod: {name}")
        return trouble

    def tell(self, owner: Object, reason: str, message: str, kind: str = "Normal") -> None:
        record_event(self._resources, owner, reason, message, self._component, kind)


def write_status(resources: Resources, rtype: ResourceType, owner: Object, fresh: Object) -> None:
    """Bring a status up to date, unless the object has gone meanwhile or been replaced by another of its name."""
    where = (namespace_of(owner), name_of(owner))
    held = resources.find(rtype, *where)
    if held is not None and uid_of(held) == uid_of(owner) and (held.get("status") or {}) != fresh:
        resources.update(rtype, *where, lambda now: {**now, "status": fresh}, subresource="status")
