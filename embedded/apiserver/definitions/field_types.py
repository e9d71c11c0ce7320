"""What Kubernetes' own schemas say about each field, prepared for walking objects: its Go type, how it merges, whether
it may be left out when empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.definitions import REFERENCE, definition_name, definitions

Kind = Literal[
    "struct",
    "map",
    "list",
    "text",
    "bool",
    "integer",
    "float",
    "quantity",
    "int-or-string",
    "time",
    "micro-time",
    "bytes",
    "schema-or-list",
    "schema-or-bool",
    "any",
]
METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_SCHEMA = _EXTENSIONS + "JSONSchemaProps"
# Definitions that are more than their schema tells: each decodes itself in Go.
_OWN_DECODING: dict[str, tuple[Kind, str]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("quantity", "resource.Quantity"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("int-or-string", "intstr.IntOrString"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": ("time", "v1.Time"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": ("micro-time", "v1.MicroTime"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": ("any", "v1.FieldsV1"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": ("any", "runtime.RawExtension"),
    _EXTENSIONS + "JSON": ("any", "v1.JSON"),
    _EXTENSIONS + "JSONSchemaPropsOrArray": ("schema-or-list", "v1.JSONSchemaPropsOrArray"),
    _EXTENSIONS + "JSONSchemaPropsOrBool": ("schema-or-bool", "v1.JSONSchemaPropsOrBool"),
    _EXTENSIONS + "JSONSchemaPropsOrStringArray": ("any", "v1.JSONSchemaPropsOrStringArray"),
}


@dataclass(frozen=True, slots=True)
class FieldType:
    """One field, item or object.

    `go` is its type as Go's own messages name it; `plain` the Python type that is right without a further look, if
    there is one; `merge_key` and `strategies` steer strategic merge.
    """

    kind: Kind
    go: str
    definition: str = ""
    items: FieldType | None = None
    plain: type | None = None
    merge_key: str = ""
    strategies: tuple[str, ...] = ()

    @property
    def fields(self) -> Mapping[str, FieldType]:
        """The fields of a struct, by their JSON names."""
        return _fields(self.definition)

    @property
    def zeros(self) -> Mapping[str, FieldType]:
        """The fields of a struct that Go writes even when nobody set them."""
        return _zeros(self.definition)

    @property
    def struct(self) -> str:
        return self.definition.rpartition(".")[2]


@lru_cache(maxsize=128)
def type_of(rtype: ResourceType) -> FieldType | None:
    """The type of whole objects of a built-in type; None for custom types and for types without a schema."""
    name = None if rtype.custom else definition_name(rtype.group, rtype.version, rtype.kind)
    return None if name is None else struct_type(name)


@lru_cache(maxsize=1024)
def struct_type(name: str) -> FieldType:
    """The type of a definition, by its full name."""
    if name in _OWN_DECODING:
        kind, go = _OWN_DECODING[name]
        return FieldType(kind, go, _SCHEMA if kind.startswith("schema-") else "")
    package, _, struct = name.rpartition(".")
    return FieldType("struct", f"{package.rpartition('.')[2]}.{struct}", name)


@lru_cache(maxsize=1024)
def _fields(name: str) -> Mapping[str, FieldType]:
    return {key: _field_type(schema) for key, schema in (definitions()[name].get("properties") or {}).items()}


@lru_cache(maxsize=1024)
def _zeros(name: str) -> Mapping[str, FieldType]:
    kinds = ("text", "bool", "integer", "struct", "list")
    found = {key: _fields(name)[key] for key in definitions()[name].get("required") or ()}
    return {key: found_type for key, found_type in found.items() if found_type.kind in kinds}


def _field_type(schema: Object) -> FieldType:
    bare = _bare(schema)
    key, strategy = schema.get("x-kubernetes-patch-merge-key", ""), schema.get("x-kubernetes-patch-strategy")
    return replace(bare, merge_key=key, strategies=tuple(strategy.split(","))) if strategy else bare


def _bare(schema: Object) -> FieldType:
    if "allOf" in schema:
        return _bare(schema["allOf"][0])
    if "$ref" in schema:
        return struct_type(schema["$ref"].removeprefix(REFERENCE))
    match schema.get("type"):
        case "array":
            items = _field_type(schema["items"])
            return FieldType("list", f"[]{items.go}", items=items)
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            items = _field_type(schema["additionalProperties"])
            return FieldType("map", f"map[string]{items.go}", items=items)
    return _scalar(schema.get("type"), schema.get("format", ""))


def _scalar(kind: Any, width: str) -> FieldType:
    match kind:
        case "string" if width == "byte":
            return FieldType("bytes", "[]uint8")
        case "string":
            return FieldType("text", "string", plain=str)
        case "boolean":
            return FieldType("bool", "bool", plain=bool)
        case "integer":
            return FieldType("integer", width or "int64")
        case "number":
            return FieldType("float", "float64")
    return FieldType("any", "interface {}")
