"""OpenAPI, as little of it as kubectl needs to send its writes.

kubectl looks for the PATCH operation of a kind, for its `fieldValidation` and `dryRun` parameters, and for the
patch content types; without the latter it falls back to OpenAPI v2. A manifest of kind List it looks up in v2 alone,
and skips its own validation of every kind that v2 does not describe: ours describes none, and the server validates.
"""

from hashlib import sha256

from local.apiserver.objects import Object, encode
from local.apiserver.registry import Registry, ResourceType

# What clients ask for is no media type by RFC 2045, for its @; upstream answers with a dot in its place.
V2_ACCEPTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_CONTENT_TYPE = V2_ACCEPTED.replace("@", ".")
V2_DOCUMENT = b""  # a protobuf message without a field
_MERGE_TYPES = ("application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"


def index(registry: Registry) -> Object:
    """The list of documents, each with a hash of its content so that clients may keep it."""
    paths = {}
    for group, versions in registry.groups().items():
        for version in versions:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = sha256(encode(document(registry, group, version))).hexdigest()[:32].upper()
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def document(registry: Registry, group: str, version: str) -> Object:
    """The document of one group and version."""
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    paths: Object = {}
    for rtype in registry.groups().get(group, {}).get(version, []):
        scope = "/namespaces/{namespace}" if rtype.namespaced else ""
        path = f"{base}{scope}/{rtype.plural}"
        paths[path] = {"post": _operation(rtype, "post", ["application/json"])}
        content = [*_MERGE_TYPES, *(() if rtype.custom else (_STRATEGIC,))]
        paths[path + "/{name}"] = {
            "get": _operation(rtype, "get", []),
            "put": _operation(rtype, "put", ["application/json"]),
            "patch": _operation(rtype, "patch", content),
            "delete": _operation(rtype, "delete", []),
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.32.4"},
        "paths": paths,
        "components": {"schemas": {}},
    }


def _operation(rtype: ResourceType, action: str, content: list[str]) -> Object:
    operation: Object = {
        "operationId": f"{action}{rtype.version.title()}{rtype.kind}",
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": rtype.group, "version": rtype.version, "kind": rtype.kind},
        "responses": {"200": {"description": "OK"}},
    }
    if content:
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in ("dryRun", "fieldManager", "fieldValidation")
        ]
        operation["requestBody"] = {"content": {kind: {"schema": {"type": "object"}} for kind in content}}
    return operation
