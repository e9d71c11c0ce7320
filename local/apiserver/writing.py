"""POST, PUT, PATCH and DELETE on resources: from request bodies to operations."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from local.apiserver import admission, status
from local.apiserver.messages import JSON, Request, Response, answer
from local.apiserver.objects import Object, decode, unstorable
from local.apiserver.patch import json_patch, merge_patch
from local.apiserver.proto import MAGIC, decode_protobuf
from local.apiserver.reading import filter_of
from local.apiserver.registry import NAMESPACES, PODS
from local.apiserver.resources import DeleteOptions, WriteOptions
from local.apiserver.routes import Target
from local.apiserver.strategic import strategic_merge
from local.apiserver.writes import Writes

_PROTOBUF = "application/vnd.kubernetes.protobuf"
_YAML = ("application/yaml", "application/x-yaml", "text/yaml")


def body_value(request: Request) -> Any:
    """The decoded body, whatever it is written in; raises 400 or 415."""
    try:
        if request.content_type == _PROTOBUF or request.body.startswith(MAGIC):
            value: Any = decode_protobuf(request.body)
        elif request.content_type in _YAML:
            value = yaml.safe_load(request.body)
        elif request.content_type in ("", JSON, "application/octet-stream") or request.content_type.endswith("+json"):
            value = decode(request.body)
        else:
            raise status.unsupported_media(f"the body of the request was in an unknown format - {request.content_type}")
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise status.bad_request(f"the request body cannot be decoded: {error}") from None
    if (path := unstorable(value)) is not None:
        raise status.bad_request(f"the request body cannot be decoded: the number at {path} does not fit 64 bits")
    return value


def body_object(request: Request) -> Object:
    value = body_value(request)
    if not isinstance(value, dict):
        raise status.bad_request("the request body must be an object")
    return value


def write_options(request: Request) -> WriteOptions:
    dry_run = request.query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise status.bad_request(f'dryRun: Unsupported value: {dry_run!r}: supported values: "All"')
    return WriteOptions(dry_run == "All", request.query.get("fieldValidation") or "Warn")


async def create(writes: Writes, target: Target, request: Request) -> Response:
    obj = body_object(request)
    kind = (obj.get("apiVersion") or target.rtype.api_version, obj.get("kind") or target.rtype.kind)
    if kind != (target.rtype.api_version, target.rtype.kind):
        raise status.bad_request(
            f"{kind[0]}, Kind={kind[1]} in the body does not match the expected {target.rtype.api_version}, "
            f"Kind={target.rtype.kind}"
        )
    options = write_options(request)
    return answer(await writes.create(target.rtype, target.namespace, obj, options), 201, options.warnings)


async def replace(writes: Writes, target: Target, request: Request) -> Response:
    options, body = write_options(request), body_object(request)
    obj = await writes.replace(target.rtype, target.namespace, target.name, body, options, target.subresource)
    return answer(obj, 200, options.warnings)


async def patch(writes: Writes, target: Target, request: Request) -> Response:
    """Apply a JSON, merge or strategic merge patch to the live object."""
    options, rtype = write_options(request), target.rtype
    kind = request.content_type
    if kind not in ("application/json-patch+json", "application/merge-patch+json") and not (
        kind == "application/strategic-merge-patch+json" and rtype.custom is None
    ):
        raise status.unsupported_media(
            f"the body of the request was in an unknown format - {kind}: accepted media types include: "
            "application/json-patch+json, application/merge-patch+json"
            + ("" if rtype.custom else ", application/strategic-merge-patch+json")
        )
    value = body_value(request)

    def change(obj: Object) -> Object:
        if kind == "application/json-patch+json":
            changed = json_patch(obj, value)
        elif kind == "application/merge-patch+json":
            changed = merge_patch(obj, value)
        else:
            changed = strategic_merge(rtype.id, obj, value)
        if not isinstance(changed, dict) or not isinstance(changed.get("metadata"), dict):
            raise status.bad_request("the patch does not leave an object with metadata")
        return changed

    obj = await writes.update(rtype, target.namespace, target.name, change, options, target.subresource)
    return answer(obj, 200, options.warnings)


def delete_options(request: Request) -> DeleteOptions:
    """DeleteOptions from the body, in JSON, YAML or protobuf, or else from the query."""
    body = body_object(request) if request.body.strip() else {}
    grace = body.get("gracePeriodSeconds")
    if grace is None and request.query.get("gracePeriodSeconds", "").isdecimal():
        grace = int(request.query["gracePeriodSeconds"])
    if grace is not None and (not isinstance(grace, int) or grace < 0):
        raise status.bad_request("gracePeriodSeconds must be a non-negative integer")
    preconditions = body.get("preconditions") or {}
    propagation = body.get("propagationPolicy") or request.query.get("propagationPolicy")
    if body.get("orphanDependents"):
        propagation = "Orphan"
    if propagation not in (None, "", "Background", "Foreground", "Orphan"):
        raise status.bad_request(f"propagationPolicy {propagation!r} is not one of Background, Foreground, Orphan")
    return DeleteOptions(
        grace_seconds=grace,
        propagation=propagation or None,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run="All" in (body.get("dryRun") or ()) or request.query.get("dryRun") == "All",
    )


async def delete(writes: Writes, target: Target, request: Request) -> Response:
    obj, gone = await writes.delete(target.rtype, target.namespace, target.name, delete_options(request))
    if target.rtype in (PODS, NAMESPACES) or not gone:
        return answer(obj)
    return answer(status.success(target.rtype, target.name, obj["metadata"]["uid"]))


async def delete_collection(writes: Writes, target: Target, request: Request) -> Response:
    """Delete everything the selectors admit."""
    options, wanted = delete_options(request), filter_of(target, request)
    removed, resources = [], writes.resources
    for record in list(resources.store.select(target.rtype.id, wanted)):
        obj = resources.decoded(target.rtype, record)
        if target.rtype is NAMESPACES and record.name in admission.IMMORTAL_NAMESPACES:
            continue
        removed.append((await writes.delete(target.rtype, record.namespace, record.name, options))[0] or obj)
    head = {"kind": target.rtype.listing_kind, "apiVersion": target.rtype.api_version}
    return answer({**head, "metadata": {"resourceVersion": str(resources.store.revision)}, "items": removed})
