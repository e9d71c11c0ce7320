"""Discovery documents: the aggregated form modern kubectl asks for, and the legacy ones beneath it."""

from collections.abc import Iterable

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import BINDINGS, PODS, Registry, ResourceType

VERSION: Object = {
    "major": "1",
    "minor": "32",
    "gitVersion": "v1.32.4+sublet",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2025-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}

# Sub-resources: the group, version and kind they speak, and what can be done to them.
_SUBRESOURCES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "attach": ("", "v1", "PodAttachOptions", ("create", "get")),
    "binding": ("", "v1", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "exec": ("", "v1", "PodExecOptions", ("create", "get")),
    "finalize": ("", "v1", "Namespace", ("update",)),
    "log": ("", "v1", "Pod", ("get",)),
    "portforward": ("", "v1", "PodPortForwardOptions", ("create", "get")),
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}
_OWN_PATHS = (
    *("/.well-known/openid-configuration", "/apis", "/healthz", "/livez", "/openapi/v3", "/openid/v1/jwks"),
    *("/healthz/ping", "/livez/ping", "/metrics", "/readyz", "/readyz/ping", "/version"),
)
_STATUS_VERBS = ("get", "patch", "update")


def aggregated_version(accept: str) -> str | None:
    """`v2` or `v2beta1` when the Accept header asks for aggregated discovery, preferring the former."""
    wanted = [part for part in accept.split(",") if "g=apidiscovery.k8s.io" in part.replace(" ", "")]
    for version in ("v2", "v2beta1"):
        if any(f"v={version};" in part.replace(" ", "") + ";" for part in wanted):
            return version
    return None


def aggregated_content_type(version: str) -> str:
    return f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


def aggregated(registry: Registry, core: bool, version: str) -> Object:
    """APIGroupDiscoveryList of the core group alone (`/api`) or of all the others (`/apis`)."""
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {"version": name, "resources": [_entry(rtype) for rtype in _announced(types)], "freshness": "Current"}
                for name, types in versions.items()
            ],
        }
        for group, versions in registry.groups().items()
        if (group == "") == core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _announced(types: Iterable[ResourceType]) -> list[ResourceType]:
    """The types of a group and version, with what goes by the path of a type without being one."""
    found = list(types)
    return [BINDINGS, *found] if PODS in found else found


def _entry(rtype: ResourceType) -> Object:
    entry: Object = {
        "resource": rtype.plural,
        "responseKind": {"group": rtype.group, "version": rtype.version, "kind": rtype.kind},
        "scope": "Namespaced" if rtype.namespaced else "Cluster",
        "singularResource": rtype.singular_name,
        "verbs": list(rtype.verbs),
    }
    if rtype.short_names:
        entry["shortNames"] = list(rtype.short_names)
    if rtype.categories:
        entry["categories"] = list(rtype.categories)
    if rtype.subresources:
        entry["subresources"] = [_subentry(rtype, name) for name in rtype.subresources]
    return entry


def _subresource(rtype: ResourceType, name: str) -> tuple[str, str, str, tuple[str, ...]]:
    return _SUBRESOURCES.get(name) or (rtype.group, rtype.version, rtype.kind, _STATUS_VERBS)


def _subentry(rtype: ResourceType, name: str) -> Object:
    group, version, kind, verbs = _subresource(rtype, name)
    return {
        "subresource": name,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "verbs": list(verbs),
    }


def index(registry: Registry) -> Object:
    """The paths of the server, as `GET /` lists them."""
    served = [
        path
        for group, versions in registry.groups().items()
        for path in (
            f"/apis/{group}" if group else "/api",
            *(f"/apis/{group}/{version}" if group else f"/api/{version}" for version in versions),
        )
    ]
    return {"paths": sorted({*served, *_OWN_PATHS})}


def api_versions() -> Object:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(registry: Registry) -> Object:
    groups = [_group(name, list(versions)) for name, versions in registry.groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: Registry, name: str) -> Object | None:
    versions = registry.groups().get(name)
    return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, list(versions))}


def _group(name: str, versions: list[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(registry: Registry, group_name: str, version: str) -> Object:
    """APIResourceList of one group and version; `kubectl drain` looks for pods/eviction in the core one."""
    resources = []
    for rtype in _announced(registry.groups().get(group_name, {}).get(version, [])):
        resources.append(_resource(rtype))
        resources += [_legacy_subresource(rtype, name) for name in rtype.subresources]
    group_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def _resource(rtype: ResourceType) -> Object:
    entry: Object = {
        "name": rtype.plural,
        "singularName": rtype.singular_name,
        "namespaced": rtype.namespaced,
        "kind": rtype.kind,
        "verbs": list(rtype.verbs),
    }
    if rtype.short_names:
        entry["shortNames"] = list(rtype.short_names)
    if rtype.categories:
        entry["categories"] = list(rtype.categories)
    return entry


def _legacy_subresource(rtype: ResourceType, name: str) -> Object:
    group_name, version, kind, verbs = _subresource(rtype, name)
    entry: Object = {
        "name": f"{rtype.plural}/{name}",
        "singularName": "",
        "namespaced": rtype.namespaced,
        "kind": kind,
        "verbs": list(verbs),
    }
    if (group_name, version) != (rtype.group, rtype.version):
        entry |= {"group": group_name, "version": version}
    return entry
