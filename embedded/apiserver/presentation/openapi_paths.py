"""The paths and operations of one OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.definitions import REFERENCE, definitions
from embedded.apiserver.presentation.openapi_schemas import SUBRESOURCE_KINDS, kind_of, schema_name

_JSON = ("application/json", "application/yaml")
_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_STRATEGIC = "application/strategic-merge-patch+json"
_POSTED = ("binding", "eviction", "token")
_LIST_OPTIONS = ("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "watch")
_WRITE_OPTIONS = ("dryRun", "fieldManager", "fieldValidation")
_METHODS = {"get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
# Verbs → how upstream begins an operation's id, and what `x-kubernetes-action` says.
_ACTIONS = {"create": ("create", "post"), "update": ("replace", "put"), "get": ("read", "get")}


def paths_of(types: Iterable[ResourceType]) -> Object:
    """Every path of these types, with the operations each allows."""
    paths: Object = {}
    for rtype in types:
        base = f"/apis/{rtype.group}/{rtype.version}" if rtype.group else f"/api/{rtype.version}"
        scope = "/namespaces/{namespace}" if rtype.namespaced else ""
        path = f"{base}{scope}/{rtype.plural}"
        if rtype.namespaced and "list" in rtype.verbs:
            paths[f"{base}/{rtype.plural}"] = {"get": _operation(rtype, "list")}
        paths[path] = _operations(rtype, "list", "create")
        paths[path + "/{name}"] = _operations(rtype, "get", "update", "patch", "delete")
        for name in rtype.subresources:
            paths[path + "/{name}/" + name] = _subresource(rtype, name)
    return {path: operations for path, operations in paths.items() if operations}


def _operations(rtype: ResourceType, *verbs: str) -> Object:
    return {_METHODS[verb]: _operation(rtype, verb) for verb in verbs if verb in rtype.verbs}


def _subresource(rtype: ResourceType, name: str) -> Object:
    if name == "log":
        return {"get": _operation(rtype, "get", name)}
    if name == "finalize":
        return {"put": _operation(rtype, "update", name)}
    verbs = ("create",) if name in _POSTED else ("get", "update", "patch")
    return {_METHODS[verb]: _operation(rtype, verb, name) for verb in verbs}


def _operation(rtype: ResourceType, verb: str, subresource: str = "") -> Object:
    begins, action = _ACTIONS.get(verb, (verb, verb))
    kind = _kind(rtype, subresource)
    group = rtype.group.partition(".")[0].title() or "Core"
    schema = {"$ref": REFERENCE + _schema(rtype, verb, subresource)}
    scope = "Namespaced" if rtype.namespaced else ""
    operation: Object = {
        "operationId": f"{begins}{group}{rtype.version.title()}{scope}{rtype.kind}{subresource.title()}",
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
    }
    if options := _LIST_OPTIONS if verb == "list" else () if verb == "get" else _WRITE_OPTIONS:
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in options
        ]
    if verb == "patch":
        content = [*_PATCHES, *(() if rtype.custom else (_STRATEGIC,))]
        operation["requestBody"] = {"content": {name: {"schema": {"type": "object"}} for name in content}}
    elif verb in ("create", "update"):
        operation["requestBody"] = {"content": {name: {"schema": schema} for name in _JSON}}
    return operation


def _schema(rtype: ResourceType, verb: str, subresource: str) -> str:
    if subresource in SUBRESOURCE_KINDS:
        return SUBRESOURCE_KINDS[subresource]
    return schema_name(rtype) + ("List" if verb == "list" else "")


def _kind(rtype: ResourceType, subresource: str) -> Object:
    if subresource in SUBRESOURCE_KINDS:
        kinds = definitions()[SUBRESOURCE_KINDS[subresource]]["x-kubernetes-group-version-kind"]
        return dict(kinds[0])
    return kind_of(rtype)
