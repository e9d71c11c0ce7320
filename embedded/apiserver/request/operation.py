"""One write, or a way into a pod, as admission is told of it: to webhooks as AdmissionRequest, to CEL as `request`."""

from __future__ import annotations

from dataclasses import dataclass

from embedded.apiserver.apimachinery.objects import Object, copy
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.request.user_info import UserInfo


@dataclass(frozen=True, slots=True)
class Operation:
    """One write, or a way into a pod; `new` is None for a deletion, `old` for a creation."""

    verb: str  # CREATE, UPDATE, DELETE, CONNECT
    rtype: ResourceType
    subresource: str
    namespace: str  # of a Namespace: its own name
    name: str
    new: Object | None
    old: Object | None
    options: Object
    user: UserInfo
    dry_run: bool


def request_of(operation: Operation, shown_as: ResourceType) -> Object:
    """Who wants to do what to which object, without the object; without the fields that say nothing."""
    request = {
        "kind": _kind(operation, shown_as),
        "resource": _resource(shown_as),
        "requestKind": _kind(operation, operation.rtype),
        "requestResource": _resource(operation.rtype),
        "operation": operation.verb,
        "userInfo": operation.user.as_info(),
        "dryRun": operation.dry_run,
        "options": operation.options,
    }
    places = {"name": operation.name, "namespace": operation.namespace}
    if operation.subresource:
        places |= {"subResource": operation.subresource, "requestSubResource": operation.subresource}
    return request | {key: value for key, value in places.items() if value}


def shown(operation: Operation, obj: Object | None, shown_as: ResourceType) -> Object | None:
    """An object of the operation in the version the webhook wants."""
    if obj is None or obj.get("apiVersion") != operation.rtype.api_version:
        return obj
    return {**copy(obj), "apiVersion": shown_as.api_version}


def _kind(operation: Operation, rtype: ResourceType) -> Object:
    """Some sub-resources speak a kind of their own, such as Binding."""
    sample = operation.new or operation.old or {}
    kind, api_version = sample.get("kind", rtype.kind), sample.get("apiVersion", rtype.api_version)
    if kind == rtype.kind:
        return {"group": rtype.group, "version": rtype.version, "kind": rtype.kind}
    group, _, version = api_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind}


def _resource(rtype: ResourceType) -> Object:
    return {"group": rtype.group, "version": rtype.version, "resource": rtype.plural}
