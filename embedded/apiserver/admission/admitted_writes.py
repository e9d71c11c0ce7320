"""Writes that admission webhooks may look at: between this server's own decisions and the store, others are asked.

Where nobody asks to be asked, the write of an ordinary object is one atomic step, as in `Resources`; that of a large
one is made in the worker thread, and again where another came first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.field_errors import FieldError
from embedded.apiserver.apimachinery.objects import Object, dig, name_of, namespace_of
from embedded.apiserver.apimachinery.repeated_fields import copy_body
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.registry.resources import DeleteOptions, Draft, Resources, WriteOptions, check_preconditions
from embedded.apiserver.request.worker_thread import in_worker_thread

if TYPE_CHECKING:
    from embedded.apiserver.request.operation import Operation

_ATTEMPTS = 5  # at a change that others overtake while webhooks think about it


class AdmissionHooks(Protocol):
    """Admission by others. Every method raises StatusError for what they refuse."""

    def concern(self, rtype: ResourceType, namespace: str, subresource: str) -> bool:
        """Whether any of them may want to see such a write at all."""

    async def mutate(self, draft: Draft) -> None:
        """Let them change `draft.new`."""

    async def validate(self, draft: Draft) -> None:
        """Ask whether the completed draft may be stored."""

    async def validate_deletion(self, rtype: ResourceType, old: Object, options: DeleteOptions) -> None:
        """Ask whether this object may be deleted."""

    async def validate_connection(self, operation: Operation, warnings: list[str]) -> None:
        """Ask whether somebody may be led into a pod."""


class NoAdmissionHooks:
    """Nobody else is asked."""

    def concern(self, rtype: ResourceType, namespace: str, subresource: str) -> bool:
        return False

    async def mutate(self, draft: Draft) -> None: ...

    async def validate(self, draft: Draft) -> None: ...

    async def validate_deletion(self, rtype: ResourceType, old: Object, options: DeleteOptions) -> None: ...

    async def validate_connection(self, operation: Operation, warnings: list[str]) -> None: ...


class AdmittedWrites:
    """Creates, changes and deletes as clients and controllers do. Raises StatusError for what is refused."""

    def __init__(self, resources: Resources, hooks: AdmissionHooks) -> None:
        self.resources = resources
        self._hooks = hooks

    async def create(
        self, rtype: ResourceType, namespace: str, obj: Object, options: WriteOptions | None = None
    ) -> Object:
        options = options or WriteOptions()
        draft = await in_worker_thread(
            options.body_bytes, lambda: self.resources.draft_create(rtype, namespace, obj, options)
        )
        return await self._finish(draft, options.body_bytes)

    async def update(
        self,
        rtype: ResourceType,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        options: WriteOptions | None = None,
        subresource: str = "",
    ) -> Object:
        """As `Resources.update`. A change that another overtook meanwhile is made again on what is there now."""
        options = options or WriteOptions()
        told = len(options.warnings)
        for attempt in range(_ATTEMPTS):
            del options.warnings[told:]
            size = max(options.body_bytes, self._held_bytes(rtype, namespace, name))
            draft = await in_worker_thread(
                size, lambda: self.resources.draft_update(rtype, namespace, name, change, options, subresource)
            )
            try:
                return await self._finish(draft, size)
            except StatusError as error:
                if error.reason != "Conflict" or attempt == _ATTEMPTS - 1 or self._unchanged(rtype, draft.old):
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def replace(
        self,
        rtype: ResourceType,
        namespace: str,
        name: str,
        obj: Object,
        options: WriteOptions | None = None,
        subresource: str = "",
    ) -> Object:
        """PUT: like update, but some types insist on a resourceVersion."""
        if dig(obj, "metadata.resourceVersion") in (None, "", "0") and not rtype.unconditional_update:
            self.resources.get(rtype, namespace, name)
            error = FieldError(
                "metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0x0: must be specified for an update"
            )
            raise status.invalid(rtype, name, [error])
        return await self.update(rtype, namespace, name, lambda _: copy_body(obj), options, subresource)

    async def delete(
        self, rtype: ResourceType, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> tuple[Object, bool]:
        """As `Resources.delete`, of an object in the very state that was agreed to."""
        options = options or DeleteOptions()
        if not self._hooks.concern(rtype, namespace, ""):
            return self.resources.delete(rtype, namespace, name, options)
        told = len(options.warnings)
        for _ in range(_ATTEMPTS):
            del options.warnings[told:]
            old = self.resources.get(rtype, namespace, name)
            check_preconditions(rtype, old, options.uid, options.resource_version)
            await self._hooks.validate_deletion(rtype, old, options)
            if self._unchanged(rtype, old):
                return self.resources.delete(rtype, namespace, name, options)
        raise status.stale(rtype, name)

    async def admit(
        self, rtype: ResourceType, subresource: str, obj: Object, old: Object | None, options: WriteOptions
    ) -> Object:
        """Ask about what a sub-resource takes and nobody stores, such as a Binding; as others leave it."""
        if not self._hooks.concern(rtype, "", subresource):
            return obj
        draft = Draft(rtype, obj, old, options, subresource)
        await self._hooks.mutate(draft)
        await self._hooks.validate(draft)
        return draft.new

    async def connect(self, operation: Operation, warnings: list[str]) -> None:
        """Ask about a way into a pod."""
        if self._hooks.concern(operation.rtype, operation.namespace, operation.subresource):
            await self._hooks.validate_connection(operation, warnings)

    async def _finish(self, draft: Draft, size_bytes: int) -> Object:
        asked = self._hooks.concern(draft.rtype, draft.namespace, draft.subresource)
        if asked:
            await self._hooks.mutate(draft)
        await in_worker_thread(size_bytes, lambda: self.resources.complete(draft))
        if asked:
            await self._hooks.validate(draft)
        return self.resources.commit(draft)

    def _held_bytes(self, rtype: ResourceType, namespace: str, name: str) -> int:
        held = self.resources.store.get(rtype.id, namespace, name)
        return 0 if held is None else held.size_bytes

    def _unchanged(self, rtype: ResourceType, old: Object | None) -> bool:
        """Whether this state of an object is still the one that is there: then a conflict is not one of timing."""
        if old is None:
            return False
        held = self.resources.store.get(rtype.id, namespace_of(old), name_of(old))
        return held is not None and str(held.revision) == old["metadata"]["resourceVersion"]
