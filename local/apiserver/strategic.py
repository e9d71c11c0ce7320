"""Strategic merge patch: lists merge by key where Kubernetes declares one, and replace where it does not.

https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local.apiserver.objects import Object
from local.apiserver.status import bad_request


@dataclass(frozen=True, slots=True)
class Merging:
    """How one field merges: `key` for lists of maps, `values` for lists of scalars, `fields` for what is inside.

    A field that is `whole` is replaced, although it is a map.
    """

    key: str = ""
    values: bool = False
    whole: bool = False
    fields: Mapping[str, Merging] = field(default_factory=dict)


_NOTHING = Merging()
_CONDITIONS = Merging("type")
_METADATA = Merging(fields={"finalizers": Merging(values=True), "ownerReferences": Merging("uid")})
_CONTAINERS = Merging(
    "name",
    fields={
        "env": Merging("name"),
        "ports": Merging("containerPort"),
        "volumeMounts": Merging("mountPath"),
        "volumeDevices": Merging("devicePath"),
    },
)
_POD_SPEC = Merging(
    fields={
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "ephemeralContainers": _CONTAINERS,
        "volumes": Merging("name"),
        "imagePullSecrets": Merging("name"),
        "hostAliases": Merging("ip"),
        "topologySpreadConstraints": Merging("topologyKey"),
        "schedulingGates": Merging("name"),
        "resourceClaims": Merging("name"),
    }
)
_POD_STATUS = Merging(
    fields={
        "conditions": _CONDITIONS,
        "podIPs": Merging("ip"),
        "hostIPs": Merging("ip"),
        "resourceClaimStatuses": Merging("name"),
    }
)
_NODE = Merging(
    fields={
        "metadata": _METADATA,
        "spec": Merging(fields={"podCIDRs": Merging(values=True)}),
        "status": Merging(fields={"conditions": _CONDITIONS, "addresses": Merging("type")}),
    }
)
_TEMPLATE = Merging(fields={"metadata": _METADATA, "spec": _POD_SPEC})
_STATUS = Merging(fields={"conditions": _CONDITIONS})
_PLAIN = Merging(fields={"metadata": _METADATA, "status": _STATUS})
_RULES = {
    "pods": Merging(fields={"metadata": _METADATA, "spec": _POD_SPEC, "status": _POD_STATUS}),
    "nodes": _NODE,
    "jobs.batch": Merging(
        fields={"metadata": _METADATA, "spec": Merging(fields={"template": _TEMPLATE}), "status": _STATUS}
    ),
    "poddisruptionbudgets.policy": Merging(
        fields={"metadata": _METADATA, "spec": Merging(fields={"selector": Merging(whole=True)}), "status": _STATUS}
    ),
    "serviceaccounts": Merging(
        fields={"metadata": _METADATA, "secrets": Merging("name"), "imagePullSecrets": Merging("name")}
    ),
    "services": Merging(
        fields={"metadata": _METADATA, "spec": Merging(fields={"ports": Merging("port")}), "status": _STATUS}
    ),
}
_ORDER = "$setElementOrder/"
_DELETE_VALUES = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"
_DIRECTIVE = "$patch"


def strategic_merge(type_id: str, target: Object, patch: Any) -> Object:
    """The target with the patch merged in by the rules of its type; raises 400 on a malformed patch."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch must be a map")
    return _merge_map(target, patch, _RULES.get(type_id, _PLAIN))


def _merge_map(target: Object, patch: Object, rule: Merging) -> Object:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        replaced: Object = _plain(patch)
        return replaced
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown {_DIRECTIVE} directive {directive!r}")
    merged = _retained(target, patch.get(_RETAIN))
    for key in _deletion_keys(patch):
        merged[key] = [value for value in merged.get(key) or () if value not in patch[_DELETE_VALUES + key]]
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            merged.pop(key, None)
            continue
        _merge_field(merged, key, value, patch.get(_ORDER + key), rule.fields.get(key, _NOTHING))
    for key in _ordered_only(patch):
        live = merged.get(key) or []
        merged[key] = _sorted(live, patch[_ORDER + key], [], rule.fields.get(key, _NOTHING), live)
    return merged


def _retained(target: Object, keys: Any) -> Object:
    return dict(target) if keys is None else {key: value for key, value in target.items() if key in keys}


def _deletion_keys(patch: Object) -> list[str]:
    return [key.removeprefix(_DELETE_VALUES) for key in patch if key.startswith(_DELETE_VALUES)]


def _ordered_only(patch: Object) -> list[str]:
    """Lists that the patch puts in order without changing an item of them."""
    return [
        key.removeprefix(_ORDER) for key in patch if key.startswith(_ORDER) and key.removeprefix(_ORDER) not in patch
    ]


def _merge_field(merged: Object, key: str, value: Any, order: Any, rule: Merging) -> None:
    old = merged.get(key)
    if isinstance(value, dict) and not rule.whole:
        if key not in merged and value.get(_DIRECTIVE) == "delete":
            return
        merged[key] = _merge_map(old if isinstance(old, dict) else {}, value, rule)
        if value.get(_DIRECTIVE) == "delete":
            del merged[key]
    elif isinstance(value, list) and (rule.key or rule.values):
        merged[key] = _merge_list(old if isinstance(old, list) else [], value, order, rule)
    else:
        merged[key] = _plain(value)


def _merge_list(old: list[Any], patch: list[Any], order: Any, rule: Merging) -> list[Any]:
    if rule.values:
        return _sorted([*old, *(value for value in patch if value not in old)], order, patch, rule, old)
    items = list(old)
    if any(not isinstance(item, dict) for item in patch):
        raise bad_request(f"items merged by {rule.key!r} must be maps")
    if any(item.get(_DIRECTIVE) == "replace" for item in patch):
        return [_plain(item) for item in patch if item.get(_DIRECTIVE) != "replace"]
    for item in patch:
        items = _merge_item(items, item, rule)
    return _sorted(items, order, patch, rule, old)


def _merge_item(items: list[Any], item: Object, rule: Merging) -> list[Any]:
    if rule.key not in item:
        raise bad_request(f"map: {item} does not contain declared merge key: {rule.key}")
    same = [index for index, found in enumerate(items) if found.get(rule.key) == item[rule.key]]
    if item.get(_DIRECTIVE) == "delete":
        return [found for index, found in enumerate(items) if index not in same]
    inner = Merging(fields=rule.fields)
    if not same:
        return [*items, _merge_map({}, item, inner)]
    return [_merge_map(found, item, inner) if index == same[0] else found for index, found in enumerate(items)]


def _identity(item: Any, rule: Merging) -> Any:
    return item.get(rule.key) if rule.key and isinstance(item, dict) else item


def _sorted(items: list[Any], order: Any, patch: list[Any], rule: Merging, live: list[Any]) -> list[Any]:
    """Patched items in the order the patch asks for; items only the server has keep their place before those.

    An item only the server has goes in front of the first patched item that followed it in the live list;
    patched items that are new therefore stand before it.
    """
    place = {repr(_identity(item, rule)): at for at, item in enumerate(live)}
    wanted = [repr(_identity(item, rule)) for item in (order if isinstance(order, list) else patch)]
    asked = [item for item in items if repr(_identity(item, rule)) in wanted]
    asked.sort(key=lambda item: wanted.index(repr(_identity(item, rule))))
    server_only = [item for item in items if repr(_identity(item, rule)) not in wanted]
    result: list[Any] = []
    for item in asked:
        here = place.get(repr(_identity(item, rule)), -1)
        while server_only and place.get(repr(_identity(server_only[0], rule)), here) < here:
            result.append(server_only.pop(0))
        result.append(item)
    return [*result, *server_only]


def _plain(value: Any) -> Any:
    """A value without directives, which are instructions and not content."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if not key.startswith("$") and item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
