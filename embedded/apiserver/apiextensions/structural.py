"""Whether a schema is structural, as custom resource definitions must have it.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
Messages are those of k8s.io/apiextensions-apiserver (pkg/apis/apiextensions/validation, pkg/apiserver/schema).
"""

from collections.abc import Iterator
from typing import Any

from embedded.apiserver.apiextensions import schema as values
from embedded.apiserver.apiextensions.rule_compiling import RULES, budget_errors, compile_errors
from embedded.apiserver.apiextensions.rule_paths import rule_errors
from embedded.apiserver.apiextensions.structural_lists import LIST_TYPE, MAP_KEYS, MAP_TYPE, list_type_errors
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from embedded.apiserver.apimachinery.objects import Object, copy
from embedded.apiserver.cel import patterns

TYPES = ("array", "boolean", "integer", "number", "object", "string")
INT_OR_STRING = "x-kubernetes-int-or-string"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
_UNSUPPORTED = ("$schema", "id", "patternProperties", "definitions", "dependencies", "additionalItems", "$ref")
_INT_OR_STRING_TYPES = [{"type": "integer"}, {"type": "string"}]
_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")
_ABOUT_METADATA = frozenset({"type", "properties", "description", "default", "example", "externalDocs"})
_NAMING = frozenset({"name", "generateName"})
# What shapes a value, and so has no place where values are only compared.
_SHAPING = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    PRESERVE: "must be false to be structural",
    EMBEDDED: "must be false to be structural",
    INT_OR_STRING: "must be false to be structural",
    MAP_KEYS: "must be empty to be structural",
    LIST_TYPE: "must be undefined to be structural",
    MAP_TYPE: "must be undefined to be structural",
    RULES: "must be empty to be structural",
}
_MISSING_TYPE = {
    "root": "must not be empty at the root",
    "items": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def schema_errors(path: str, schema: Object) -> list[FieldError]:
    """Everything wrong with the schema of one version, in a stable order; rules are compiled where nothing else is."""
    found = [*_errors(path, schema, "root"), *_incomplete(path, schema, schema, path)]
    return sorted(set(found), key=str) or compile_errors(path, schema)


def new_schema_errors(path: str, schema: Object) -> list[FieldError]:
    """What is held against a schema besides when it is written, and not while it stays: what its rules may cost."""
    return [] if schema_errors(path, schema) else budget_errors(path, schema)


def _children(schema: Object) -> Iterator[tuple[str, Object]]:
    for key, child in (schema.get("properties") or {}).items():
        yield f"properties[{key}]", child
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield key, schema[key]


def _errors(path: str, schema: Object, level: str) -> Iterator[FieldError]:
    yield from _keyword_errors(path, schema)
    yield from _type_errors(path, schema, level)
    yield from _extension_errors(path, schema, level)
    yield from list_type_errors(path, schema)
    yield from _default_errors(path, schema, level)
    for index, rule in enumerate(schema.get(RULES) or ()):
        yield from rule_errors(f"{path}.{RULES}[{index}]", rule, schema)
    for key, part, skips_types in _junctors(schema):
        yield from _nested_errors(f"{path}.{key}", part, skips_types)
    for key, child in _children(schema):
        at_metadata = level == "root" and key == "properties[metadata]"
        below = _metadata_errors if at_metadata else _errors
        yield from below(f"{path}.{key}", child, "items" if key == "items" else "field")
    if level == "root":
        for name in _OF_EVERY_OBJECT:
            child = (schema.get("properties") or {}).get(name) or {}
            yield from _forbidden_defaults(f"{path}.properties[{name}]", child, f"must not be set in top-level {name}")


def _forbidden_defaults(path: str, schema: Object, why: str) -> Iterator[FieldError]:
    """What every object has, no definition can give a default."""
    if schema.get("default") is not None:
        yield not_allowed(f"{path}.default", why)
    for key, child in _children(schema):
        within = "must not be set inside additionalProperties applying to object metadata"
        yield from _forbidden_defaults(f"{path}.{key}", child, within if key == "additionalProperties" else why)


def _keyword_errors(path: str, schema: Object) -> Iterator[FieldError]:
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield not_allowed(f"{path}.{key}", f"{key} is not supported")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield not_allowed(f"{path}.uniqueItems", detail)
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        detail = "additionalProperties and properties are mutual exclusive"
        yield not_allowed(f"{path}.additionalProperties", detail)
    if isinstance(schema.get("items"), list):
        yield not_allowed(f"{path}.items", "items must be a schema object and not an array")
    if (pattern := schema.get("pattern")) and (fault := patterns.fault(pattern)):
        yield bad_value(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {fault}")


def _type_errors(path: str, schema: Object, level: str) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    if kind == "null":
        yield not_allowed(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    elif kind and kind not in TYPES:
        yield not_supported(f"{path}.type", kind, TYPES)
    if schema.get(EMBEDDED) and kind != "object":
        detail = f"must be object if {EMBEDDED} is true"
        yield bad_value(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield required(f"{path}.type", _MISSING_TYPE[level])
    if level == "root" and kind not in ("", "object"):
        yield bad_value(f"{path}.type", kind, "must be object at the root")
    if kind == "array" and not schema.get("items"):
        yield required(f"{path}.items", "must be specified")
    if level == "root" and schema.get("nullable"):
        yield not_allowed(f"{path}.nullable", "nullable cannot be true at the root")
    if level == "root" and schema.get("additionalProperties") is not None:
        yield not_allowed(f"{path}.additionalProperties", "must not be used at the root")


def _extension_errors(path: str, schema: Object, level: str) -> Iterator[FieldError]:
    if schema.get(PRESERVE) is False:
        yield bad_value(f"{path}.{PRESERVE}", False, "must be true or undefined")
    for key in (PRESERVE, EMBEDDED):
        if schema.get(INT_OR_STRING) and schema.get(key):
            yield bad_value(f"{path}.{key}", True, f"must be false if {INT_OR_STRING} is true")
    if schema.get(EMBEDDED):
        if schema.get("additionalProperties") is not None:
            yield not_allowed(f"{path}.additionalProperties", f"must not be used if {EMBEDDED} is set")
        if not schema.get(PRESERVE) and not schema.get("properties"):
            yield required(f"{path}.properties", f"must not be empty if {EMBEDDED} is true without {PRESERVE}")
    if level == "root" or schema.get(EMBEDDED):
        for key in ("apiVersion", "kind"):
            kind = (schema.get("properties") or {}).get(key, {}).get("type", "string")
            if kind != "string":
                yield bad_value(f"{path}.properties[{key}].type", kind, "must be string")


def _says(key: str, value: Any) -> bool:
    """Whether a field is there for Go: what is false or an empty text is not, but where it could be absent as well."""
    return key == PRESERVE or not (value is False or value in (None, ""))


def _metadata_errors(path: str, schema: Object, _: str) -> Iterator[FieldError]:
    """Metadata is the server's own; a definition may only narrow names."""
    if schema.get("type") != "object":
        yield bad_value(f"{path}.type", schema.get("type") or "", "must be object")
    told = {key for key, value in schema.items() if _says(key, value)} - _ABOUT_METADATA
    if told or set(schema.get("properties") or {}) - _NAMING:
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield not_allowed(path, detail)


def _default_errors(path: str, schema: Object, level: str) -> Iterator[FieldError]:
    if "default" not in schema:
        return
    here, given = f"{path}.default", schema["default"]
    for key in ("apiVersion", "kind") if level == "root" and isinstance(given, dict) else ():
        if not given.get(key):
            yield required(f"{here}.{key}")
    if level == "root" and isinstance(given, dict):
        given = {key: value for key, value in given.items() if key not in _OF_EVERY_OBJECT}
    yield from values.errors(schema, given, here)
    if values.prune(schema, copy(given)):
        yield bad_value(here, given, "must not have unknown fields")


def _junctors(schema: Object) -> Iterator[tuple[str, Object, bool]]:
    """Parts that only compare values: where each is, and whether it may tell an integer from a string."""
    for key in ("anyOf", "allOf", "oneOf"):
        parts = schema.get(key) or []
        told = key == "anyOf" and parts == _INT_OR_STRING_TYPES
        for index, part in enumerate(parts):
            first = key == "allOf" and index == 0 and part.get("anyOf") == _INT_OR_STRING_TYPES
            yield f"{key}[{index}]", {k: v for k, v in part.items() if not (first and k == "anyOf")}, told
    if isinstance(schema.get("not"), dict):
        yield "not", schema["not"], False


def _nested_errors(path: str, schema: Object, skips_types: bool) -> Iterator[FieldError]:
    for key, detail in _SHAPING.items():
        if schema.get(key) not in (None, "", False, [], ()) and not (skips_types and key == "type"):
            yield not_allowed(f"{path}.{key}", detail)
    if "metadata" in (schema.get("properties") or {}):
        yield not_allowed(f"{path}.properties[metadata]", "must not be specified in a nested context")
    yield from _keyword_errors(path, {key: value for key, value in schema.items() if key != "additionalProperties"})
    for key, part, told in _junctors(schema):
        yield from _nested_errors(f"{path}.{key}", part, told)
    for key, child in _children(schema):
        if key != "additionalProperties":
            yield from _nested_errors(f"{path}.{key}", child, False)


def _incomplete(path: str, schema: Object | None, part: Object, part_path: str) -> Iterator[FieldError]:
    """Fields compared in combinations of `part` that `schema` does not have; only the root's are looked at."""
    for key, nested, _ in _junctors(part):
        yield from _unspecified(path, schema, nested, f"{part_path}.{key}")


def _unspecified(path: str, schema: Object | None, nested: Object, nested_path: str) -> Iterator[FieldError]:
    if schema is None:
        yield required(path, f"because it is defined in {nested_path}")
        return
    yield from _incomplete(path, schema, nested, nested_path)
    known: dict[str, Any] = dict(_children(schema))
    for key, child in _children(nested):
        if key != "additionalProperties":
            yield from _unspecified(f"{path}.{key}", known.get(key), child, f"{nested_path}.{key}")
