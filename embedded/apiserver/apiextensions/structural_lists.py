"""Whether a schema's list and map types (set, list map, atomic) can hold what they promise.

https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
"""

from collections.abc import Iterator

from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from embedded.apiserver.apimachinery.objects import Object

LIST_TYPE = "x-kubernetes-list-type"
MAP_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"


def list_type_errors(path: str, schema: Object) -> Iterator[FieldError]:
    """Of one schema, not of those within."""
    kind, keys, map_type = schema.get(LIST_TYPE), schema.get(MAP_KEYS) or [], schema.get(MAP_TYPE)
    if map_type is not None and schema.get("type") != "object":
        yield bad_value(f"{path}.type", schema.get("type") or "", f"must be object if {MAP_TYPE} is specified")
    if map_type not in (None, "atomic", "granular"):
        yield not_supported(f"{path}.{MAP_TYPE}", map_type, ("atomic", "granular"))
    if kind is not None and schema.get("type") != "array":
        yield bad_value(f"{path}.type", schema.get("type") or "", f"must be array if {LIST_TYPE} is specified")
    if kind not in (None, "atomic", "set", "map"):
        yield not_supported(f"{path}.{LIST_TYPE}", kind, ("atomic", "set", "map"))
    if keys and kind != "map":
        detail = f"must be map if {MAP_KEYS} is non-empty"
        yield bad_value(f"{path}.{LIST_TYPE}", kind, detail) if kind else required(f"{path}.{LIST_TYPE}", detail)
    items = schema.get("items")
    if kind == "set" and isinstance(items, dict):
        yield from _set_errors(f"{path}.items", items)
    if kind in ("set", "map") and isinstance(items, dict) and items.get("nullable"):
        yield not_allowed(f"{path}.items.nullable", f"cannot be nullable when {LIST_TYPE} is {kind}")
    if kind == "map" and isinstance(items, dict):
        yield from _map_key_errors(path, keys, items)


def _set_errors(path: str, items: Object) -> Iterator[FieldError]:
    detail = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        yield bad_value(f"{path}.{LIST_TYPE}", items[LIST_TYPE], detail)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield bad_value(f"{path}.{MAP_TYPE}", items.get(MAP_TYPE), detail)


def _map_key_errors(path: str, keys: list[str], items: Object) -> Iterator[FieldError]:
    if not keys:
        yield required(f"{path}.{MAP_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    if items.get("type") != "object":
        detail = f"must be object if parent array's {LIST_TYPE} is map"
        yield bad_value(f"{path}.items.type", items.get("type") or "", detail)
    if len(set(keys)) < len(keys):
        yield bad_value(f"{path}.{MAP_KEYS}", keys, "must not contain duplicate entries")
    for key in keys:
        found, here = (items.get("properties") or {}).get(key), f"{path}.items.properties[{key}]"
        if found is None:
            yield bad_value(f"{path}.{MAP_KEYS}", keys, "entries must all be names of item properties")
        elif found.get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield bad_value(f"{here}.type", found["type"], detail)
        elif key not in (items.get("required") or ()) and "default" not in found:
            detail = f"this property is in {MAP_KEYS}, so it must have a default or be a required property"
            yield required(f"{here}.default", detail)
        if found is not None and found.get("nullable"):
            yield not_allowed(f"{here}.nullable", f"this property is in {MAP_KEYS}, so it cannot be nullable")
