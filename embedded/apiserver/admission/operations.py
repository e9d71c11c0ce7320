"""Writes as admission webhooks are told of them."""

from __future__ import annotations

from embedded.apiserver.apimachinery.objects import Object, copy, name_of, namespace_of
from embedded.apiserver.apimachinery.resource_types import NAMESPACES, PODS, ResourceType
from embedded.apiserver.registry.resources import DeleteOptions, Draft, WriteOptions
from embedded.apiserver.registry.strategies import BORN_WITH_STATUS
from embedded.apiserver.request.operation import Operation
from embedded.apiserver.request.user_info import UserInfo

# What a new object gets only after the mutating webhooks have seen it.
_GIVEN_LATER = ("uid", "creationTimestamp", "generation")


def birth(draft: Draft) -> Operation:
    """A creation as mutating webhooks see it: without what the server settles last."""
    shown = copy(draft.new)
    for key in _GIVEN_LATER:
        shown["metadata"].pop(key, None)
    if draft.generated_name:
        shown["metadata"].pop("name", None)
    if draft.rtype.has_status and draft.rtype.id not in BORN_WITH_STATUS and not draft.subresource:
        shown.pop("status", None)
    return _written(draft, shown)


def write(draft: Draft) -> Operation:
    """A creation or change as it will be stored."""
    return _written(draft, draft.new)


def deletion(rtype: ResourceType, old: Object, options: DeleteOptions) -> Operation:
    given = {
        "gracePeriodSeconds": options.grace_seconds,
        "propagationPolicy": options.propagation,
        "preconditions": {"uid": options.uid} if options.uid else None,
    }
    return Operation(
        verb="DELETE",
        rtype=rtype,
        subresource="",
        namespace=_namespace(rtype, old),
        name=name_of(old),
        new=None,
        old=old,
        options=_options("DeleteOptions", options.dry_run, given),
        user=options.user,
        dry_run=options.dry_run,
    )


def connection(namespace: str, name: str, way: str, options: Object, user: UserInfo) -> Operation:
    """A way into a pod, whose object is what the request asks for."""
    return Operation("CONNECT", PODS, way, namespace, name, options, None, {}, user, False)


def _written(draft: Draft, new: Object) -> Operation:
    created = draft.old is None
    return Operation(
        verb="CREATE" if created else "UPDATE",
        rtype=draft.rtype,
        subresource=draft.subresource,
        namespace=_namespace(draft.rtype, new),
        name=name_of(new),
        new=new,
        old=draft.old,
        options=_write_options(draft.options, created),
        user=draft.options.user,
        dry_run=draft.options.dry_run,
    )


def _namespace(rtype: ResourceType, obj: Object) -> str:
    return name_of(obj) if rtype is NAMESPACES else namespace_of(obj)


def _write_options(options: WriteOptions, created: bool) -> Object:
    given = {"fieldManager": options.manager, "fieldValidation": options.field_validation}
    return _options("CreateOptions" if created else "UpdateOptions", options.dry_run, given)


def _options(kind: str, dry_run: bool, given: Object) -> Object:
    found = {"dryRun": ["All"] if dry_run else None, **given}
    return {
        "kind": kind,
        "apiVersion": "meta.k8s.io/v1",
        **{key: value for key, value in found.items() if value is not None},
    }
