"""The schemas that one OpenAPI document needs: of its kinds and of everything they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.definitions import REFERENCE, definition_name, definitions

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
ALWAYS = (_META + "DeleteOptions", _META + "Status", _META + "ListMeta")
# Kinds that sub-resources speak; custom ones may have a scale.
SUBRESOURCE_KINDS = {
    "binding": "io.k8s.api.core.v1.Binding",
    "eviction": "io.k8s.api.policy.v1.Eviction",
    "scale": "io.k8s.api.autoscaling.v1.Scale",
    "token": "io.k8s.api.authentication.v1.TokenRequest",
}
_TYPE_META = {
    "apiVersion": {
        "type": "string",
        "description": "APIVersion defines the versioned schema of this representation of an object.",
    },
    "kind": {
        "type": "string",
        "description": "Kind is a string value representing the REST resource this object represents.",
    },
    "metadata": {"$ref": f"{REFERENCE}{_META}ObjectMeta", "description": "Standard object's metadata."},
}


def schema_name(rtype: ResourceType) -> str:
    """The name of a kind's schema: Kubernetes' own, or for custom kinds the group's domain backwards."""
    known = None if rtype.custom else definition_name(rtype.group, rtype.version, rtype.kind)
    domain = ".".join(reversed(rtype.group.split("."))) if rtype.group else "core"
    return known or f"{domain}.{rtype.version}.{rtype.kind}"


def schemas_of(types: Iterable[ResourceType]) -> Object:
    """Schemas by name, lists of each kind included."""
    own: Object = {}
    for rtype in types:
        name = schema_name(rtype)
        own[name] = definitions().get(name) or _custom_schema(rtype)
        own[f"{name}List"] = _list_schema(rtype, name)
    wanted = [*ALWAYS, *(kind for rtype in types for kind in _spoken(rtype)), *_references(own)]
    return dict(sorted({**_closure(wanted), **own}.items()))


def _spoken(rtype: ResourceType) -> list[str]:
    return [SUBRESOURCE_KINDS[name] for name in rtype.subresources if name in SUBRESOURCE_KINDS]


def _closure(wanted: list[str]) -> Object:
    found: Object = {}
    while wanted:
        name = wanted.pop()
        if name not in found and name in definitions():
            found[name] = definitions()[name]
            wanted.extend(_references(found[name]))
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item.removeprefix(REFERENCE)
            else:
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _custom_schema(rtype: ResourceType) -> Object:
    schema = (rtype.custom.schema if rtype.custom else None) or {"type": "object"}
    properties = {**(schema.get("properties") or {}), **_TYPE_META}
    return {**schema, "properties": properties, "x-kubernetes-group-version-kind": [kind_of(rtype)]}


def _list_schema(rtype: ResourceType, name: str) -> Object:
    items = {"type": "array", "items": {"$ref": REFERENCE + name}}
    properties = {**_TYPE_META, "metadata": {"$ref": f"{REFERENCE}{_META}ListMeta"}, "items": items}
    kind = {**kind_of(rtype), "kind": rtype.listing_kind}
    return {
        "type": "object",
        "description": f"{rtype.listing_kind} is a list of {rtype.kind}",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [kind],
    }


def kind_of(rtype: ResourceType) -> Object:
    return {"group": rtype.group, "version": rtype.version, "kind": rtype.kind}
