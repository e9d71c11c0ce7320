"""Request bodies in the formats that clients send: JSON, YAML and Kubernetes' protobuf."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import yaml

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.objects import Object, unstorable
from embedded.apiserver.apimachinery.repeated_fields import decode_json
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.protobuf.reading import MAGIC, decode_protobuf
from embedded.apiserver.request.messages import JSON, Read, Request
from embedded.apiserver.request.worker_thread import LARGE_BYTES, in_worker_thread
from embedded.apiserver.serialization.yaml_body import decode_yaml

PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_YAML = ("application/yaml", "application/x-yaml", "text/yaml", APPLY_PATCH)
# Clients that name no format mean JSON.
_JSON = ("", JSON)
_PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
_PARAMETERS = re.compile(r"\s*|(\s*[^\s;=]+=(\"[^\"]*\"|[^\s;\"]*)\s*(;|$))+")
_ACCEPTED = (JSON, "application/yaml", PROTOBUF)


def unknown_format(accepted: Sequence[str]) -> status.StatusError:
    return status.unsupported_media(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    )


async def read_in_worker_thread(request: Request) -> Request:
    """The request, its body read already where that takes long: a YAML of 3 MiB takes seconds."""
    if len(request.body) < LARGE_BYTES:
        return request
    return replace(request, read=await in_worker_thread(len(request.body), lambda: _read(request)))


def _read(request: Request) -> Read:
    try:
        return Read(body_value(request))
    except status.StatusError as error:
        return Read(error=error)


def body_value(request: Request) -> Any:
    """The decoded body, whatever it is written in; raises 400 or 415."""
    if request.read is not None:
        if request.read.error is not None:
            raise request.read.error
        return request.read.value
    try:
        value = _decoded(request)
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise status.bad_request(f"the request body cannot be decoded: {error}") from None
    if (path := unstorable(value)) is not None:
        raise status.bad_request(f"the request body cannot be decoded: the number at {path} does not fit 64 bits")
    return value


def _decoded(request: Request) -> Any:
    kind = request.content_type
    if not _PARAMETERS.fullmatch(request.headers.get("content-type", "").partition(";")[2]):
        raise unknown_format(_ACCEPTED)
    if request.method != "PATCH" and kind in (*_PATCHES, APPLY_PATCH):
        raise unknown_format(_ACCEPTED)
    if kind == PROTOBUF or request.body.startswith(MAGIC):
        return decode_protobuf(request.body)
    if kind in _YAML:
        return _decoded_yaml(request.body)
    if kind in _JSON or kind in _PATCHES:
        return decode_json(request.body)
    raise unknown_format(_ACCEPTED)


def _decoded_yaml(body: bytes) -> Any:
    """JSON is YAML too, which is what kubectl sends, and is read in a fraction of the time."""
    if body.lstrip().startswith(b"{"):
        try:
            return decode_json(body)
        except msgspec.DecodeError:
            pass  # a map in YAML's flow style
    return decode_yaml(body)


def body_object(request: Request) -> Object:
    """The body as a map; nothing at all (null) is an empty one."""
    value = body_value(request)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise status.bad_request("the request body must be an object")
    return value


def body_of(request: Request, rtype: ResourceType, *others: str) -> Object:
    """The body as an object of the type; raises 400 where it says to be of another. `others`: API versions."""
    obj = body_object(request)
    if rtype.custom is not None and not obj.get("kind"):
        told = f"the object provided is unrecognized (must be of type {rtype.kind}): Object 'Kind' is missing"
        raise status.bad_request(told)
    api_version = obj.get("apiVersion") or ("" if rtype.custom else rtype.api_version)
    kind = obj.get("kind") or rtype.kind
    if kind != rtype.kind:
        version = str(api_version).rpartition("/")[2]
        raise status.bad_request(f'{kind} in version "{version}" cannot be handled as a {rtype.kind}')
    if api_version not in (rtype.api_version, *others):
        raise status.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({rtype.api_version})"
        )
    return obj


def check_named(obj: Object, rtype: ResourceType, namespace: str, name: str) -> None:
    """Raises 400 for an object that is not the one the path names."""
    meta = obj.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    if not meta.get("name"):
        raise status.nameless(name)
    if meta["name"] != name:
        raise status.misnamed(meta["name"], name)
    check_place(obj, rtype, namespace)


def check_place(obj: Object, rtype: ResourceType, namespace: str) -> None:
    """Raises 400 for an object that says to be in another namespace than the path's."""
    meta = obj.get("metadata")
    if rtype.namespaced and isinstance(meta, dict) and (meta.get("namespace") or namespace) != namespace:
        raise status.misplaced()
