"""POST, PUT, PATCH and DELETE on resources: from request bodies to operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as replaced
from typing import Any

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.field_errors import bad_value
from embedded.apiserver.apimachinery.json_patch import json_patch, merge_patch
from embedded.apiserver.apimachinery.objects import Object, copy
from embedded.apiserver.apimachinery.repeated_fields import repeated_fields
from embedded.apiserver.apimachinery.resource_types import JOBS, ResourceType
from embedded.apiserver.apimachinery.selectors import Filter
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.handlers import apply
from embedded.apiserver.handlers.get import filter_of, listed, page_of
from embedded.apiserver.handlers.write_options import delete_options, write_options
from embedded.apiserver.managedfields.strategic_merge import strategic_merge
from embedded.apiserver.registry.resources import DeleteOptions, Resources, WriteOptions
from embedded.apiserver.request.messages import Request, Response, answer
from embedded.apiserver.request.target import Target
from embedded.apiserver.request.worker_thread import in_worker_thread
from embedded.apiserver.serialization.request_body import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    body_of,
    body_value,
    check_named,
    unknown_format,
)
from embedded.apiserver.storage.records import Record

__all__ = ["body_value", "create", "delete", "delete_collection", "patch", "replace", "write_options"]

_PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)

_ATTEMPTS = 5  # at a deletion of what others change while webhooks think about it
_OPERATION = ("op", "path", "from", "value")
# `ReturnDeletedObject` of the registries of kube-apiserver, whose typed clients expect the object; others get a Status.
_ANSWER_WITH_THEMSELVES = frozenset(
    {
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
    }
)


async def create(writes: AdmittedWrites, target: Target, request: Request) -> Response:
    obj, options = body_of(request, target.rtype), write_options(request)
    return answer(await writes.create(target.rtype, target.namespace, obj, options), 201, options.warnings)


async def replace(writes: AdmittedWrites, target: Target, request: Request) -> Response:
    """PUT, which creates what is not there where the type is one of those that clients write blindly."""
    rtype, options, body = target.rtype, write_options(request), body_of(request, target.rtype)
    check_named(body, rtype, target.namespace, target.name)
    if bears(writes.resources, target):
        if uid := body["metadata"].get("uid"):
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
            raise status.conflict(rtype, target.name, why)
        body["metadata"].pop("resourceVersion", None)
        return answer(await writes.create(rtype, target.namespace, body, options), 201, options.warnings)
    obj = await writes.replace(rtype, target.namespace, target.name, body, options, target.subresource)
    return answer(obj, 200, options.warnings)


def bears(resources: Resources, target: Target) -> bool:
    """Whether a PUT there creates its object."""
    if not target.rtype.created_by_put or target.subresource:
        return False
    return resources.store.get(target.rtype.id, target.namespace, target.name) is None


def patch_types(rtype: ResourceType) -> tuple[str, ...]:
    """Custom types know no merge keys, so that a strategic patch would not know what to merge by."""
    strategic = (STRATEGIC_PATCH,) if rtype.custom is None else ()
    return (JSON_PATCH, MERGE_PATCH, *strategic, APPLY_PATCH)


def check_patch_type(rtype: ResourceType, kind: str) -> None:
    """Raises 415, which tells of the types that there are where kube-apiserver does."""
    if kind in (known := patch_types(rtype)):
        return
    raise status.unsupported_patch() if rtype.custom is None else unknown_format(known)


async def patch(writes: AdmittedWrites, target: Target, request: Request) -> Response:
    """Apply a patch of any kind to the live object."""
    check_patch_type(target.rtype, request.content_type)
    if request.content_type == APPLY_PATCH:
        return await apply.apply(writes, target, request)
    value = body_value(request)
    options = await in_worker_thread(len(request.body), lambda: _patch_options(request, value))

    def change(obj: Object) -> Object:
        # A copy, because what becomes of it is changed on its way, and a change that is overtaken is made again.
        return _patched(target.rtype, request.content_type, obj, copy(value))

    try:
        obj = await writes.update(target.rtype, target.namespace, target.name, change, options, target.subresource)
    except status.Undecodable as error:
        raise status.unpatchable(value, error) from None
    return answer(obj, 200, options.warnings)


def _patch_options(request: Request, value: Any) -> WriteOptions:
    """The options of a patch, with what strict decoding holds against the patch itself."""
    told = list(repeated_fields(value))
    if request.content_type == JSON_PATCH:
        told = [f"json patch {text}" for text in (*told, *_unknown_members(value))]
    return replaced(write_options(request), repeated=tuple(told))


def _unknown_members(operations: Any) -> Iterator[str]:
    for index, operation in enumerate(operations if isinstance(operations, list) else ()):
        if isinstance(operation, dict):
            yield from (f'unknown field "[{index}].{key}"' for key in operation if key not in _OPERATION)


def _patched(rtype: ResourceType, kind: str, obj: Object, value: Any) -> Object:
    if kind == JSON_PATCH:
        changed = json_patch(obj, [] if value is None else value)
    elif kind == MERGE_PATCH:
        changed = merge_patch(obj, value)
    else:  # into the fields of the type, to which its name does not belong
        changed = strategic_merge(rtype, obj, {} if value is None else value)
        changed |= {"apiVersion": rtype.api_version, "kind": rtype.kind}
    if not isinstance(changed, dict) or not isinstance(changed.get("metadata"), dict):
        raise status.bad_request("the patch does not leave an object with metadata")
    _check_kept(rtype, obj, changed)
    return changed


def _check_kept(rtype: ResourceType, old: Object, new: Object) -> None:
    """Raises 422 for a patch of what says which object it is."""
    kind, api_version = new.get("kind") or rtype.kind, new.get("apiVersion") or rtype.api_version
    if (kind, api_version) != (rtype.kind, rtype.api_version):
        raise status.undecodable(rtype, f"{api_version}, Kind={kind} is not {rtype.api_version}, Kind={rtype.kind}")
    if (uid := new["metadata"].get("uid")) and uid != old["metadata"]["uid"]:
        error = bad_value("metadata.uid", uid, "field is immutable")
        raise status.invalid(rtype, old["metadata"]["name"], [error])


def _deletion(target: Target, request: Request) -> DeleteOptions:
    options = delete_options(request)
    if target.rtype is JOBS and options.propagation is None:
        options.warnings.append(_PODS_STAY)
    return options


async def delete(writes: AdmittedWrites, target: Target, request: Request) -> Response:
    options = _deletion(target, request)
    obj, gone = await writes.delete(target.rtype, target.namespace, target.name, options)
    if target.rtype.id not in _ANSWER_WITH_THEMSELVES and gone:
        obj = status.success(target.rtype, target.name, obj["metadata"]["uid"])
    return answer(obj, 200, options.warnings)


async def _delete_matching(
    writes: AdmittedWrites, rtype: ResourceType, found: Record, wanted: Filter, options: DeleteOptions
) -> Object | None:
    """Delete what a selection found, unless while others were asked it went, made place for another or left it."""
    held: Record | None = found
    for _ in range(_ATTEMPTS):
        if held is None or held.uid != found.uid or not held.admitted_by(wanted):
            return None
        asked = (options.uid or held.uid, options.resource_version or str(held.revision))
        pinned = replaced(options, uid=asked[0], resource_version=asked[1])
        before = held
        try:
            return (await writes.delete(rtype, held.namespace, held.name, pinned))[0]
        except StatusError:
            held = writes.resources.store.get(rtype.id, before.namespace, before.name)
            if held is before:
                raise
    raise status.stale(rtype, found.name)


async def delete_collection(writes: AdmittedWrites, target: Target, request: Request) -> Response:
    """Delete the page that a list with the same options would show; answers with it, as it was."""
    options, wanted, resources = _deletion(target, request), filter_of(target, request), writes.resources
    page, meta = page_of(resources.store, target.rtype, wanted, request)
    removed = [
        record for record in page if await _delete_matching(writes, target.rtype, record, wanted, options) is not None
    ]
    return replaced(listed(resources, target.rtype, removed, meta), warnings=tuple(options.warnings))
