"""Custom resource definitions: from an applied definition to served types."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from local.apiserver import schema
from local.apiserver.objects import Object, dig, name_of, set_condition
from local.apiserver.registry import Registry, ResourceType
from local.apiserver.status import FieldError, bad_request, bad_value, not_supported, required

_SCHEMA_TYPES = ("array", "boolean", "integer", "number", "object", "string")


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One additionalPrinterColumn of a definition."""

    name: str
    type: str
    json_path: str
    description: str
    priority: int


@dataclass(frozen=True, slots=True)
class CustomVersion:
    """What one version of a definition says about its objects."""

    schema: Object | None
    columns: tuple[PrinterColumn, ...]
    storage_api_version: str
    only_version: bool

    def prune(self, obj: Object, field_validation: str, warnings: list[str]) -> None:
        """Drop fields the schema does not know: silently, with a warning, or (Strict) by refusing with 400."""
        unknown = [] if self.schema is None else schema.prune(self.schema, obj, root=True)
        if not unknown:
            return
        told = [f'unknown field "{path}"' for path in unknown]
        if field_validation == "Strict":
            raise bad_request(f"strict decoding error: {', '.join(told)}")
        if field_validation != "Ignore":
            warnings.extend(told)

    def default(self, obj: Object) -> None:
        if self.schema is not None:
            schema.default(self.schema, obj)

    def errors(self, obj: Object) -> Iterator[FieldError]:
        if self.schema is not None:
            # Metadata has its own rules, the same for every type.
            yield from schema.errors(self.schema, {k: v for k, v in obj.items() if k != "metadata"} | {"metadata": {}})


def served_types(definition: Object) -> Iterator[ResourceType]:
    """The types a stored definition asks to serve, one for each served version."""
    spec = definition["spec"]
    names = spec["names"]
    storage = next(version["name"] for version in spec["versions"] if version["storage"])
    for version in spec["versions"]:
        if not version["served"]:
            continue
        subresources = tuple(key for key in ("scale", "status") if key in (version.get("subresources") or {}))
        yield ResourceType(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(name for name in subresources if name == "status"),
            generation=True,
            unconditional_update=False,
            singular=names["singular"],
            list_kind=names["listKind"],
            custom=CustomVersion(
                schema=dig(version, "schema.openAPIV3Schema"),
                columns=_columns(version),
                storage_api_version=f"{spec['group']}/{storage}",
                only_version=len(spec["versions"]) == 1,
            ),
        )


def _columns(version: Object) -> tuple[PrinterColumn, ...]:
    found = version.get("additionalPrinterColumns") or []
    return tuple(
        PrinterColumn(
            column["name"],
            column["type"],
            column["jsonPath"],
            column.get("description", ""),
            column.get("priority", 0),
        )
        for column in found
    )


def serve(registry: Registry, definition: Object) -> None:
    """Bring the registry in line with a stored definition."""
    registry.unregister(name_of(definition))
    registry.register(*served_types(definition))


def establish(definition: Object, now: float) -> None:
    """Accept the definition's names and mark it served, in its status, in place."""
    definition.setdefault("status", {})
    for kind, reason, message in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        set_condition(definition, {"type": kind, "status": "True", "reason": reason, "message": message}, now)
    status, versions = definition["status"], definition["spec"]["versions"]
    status["acceptedNames"] = definition["spec"]["names"]
    storage = next(version["name"] for version in versions if version["storage"])
    stored = status.setdefault("storedVersions", [])
    if storage not in stored:
        stored.append(storage)


def definition_errors(definition: Object) -> Iterator[FieldError]:
    """Everything wrong with a definition that would keep its types from being served."""
    spec = definition["spec"]
    expected = f"{spec['names']['plural']}.{spec['group']}"
    if name_of(definition) != expected:
        yield bad_value("metadata.name", name_of(definition), f'must be spec.names.plural+"."+spec.group ({expected})')
    if spec["scope"] not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    if "." not in spec["group"]:
        yield bad_value("spec.group", spec["group"], "should be a domain with at least one dot")
    if sum(version["storage"] for version in spec["versions"]) != 1:
        yield bad_value(
            "spec.versions",
            [v["name"] for v in spec["versions"]],
            "must have exactly one version marked as storage version",
        )
    for index, version in enumerate(spec["versions"]):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        found = dig(version, "schema.openAPIV3Schema")
        if found is None:
            yield required(path, "schemas are required")
        else:
            yield from _schema_errors(path, found)


def _schema_errors(path: str, found: Object) -> Iterator[FieldError]:
    kind = found.get("type")
    untyped = found.get("x-kubernetes-int-or-string") or found.get("x-kubernetes-preserve-unknown-fields")
    if kind is None and not untyped:
        yield required(f"{path}.type", "must not be empty for specified object fields")
    elif kind is not None and kind not in _SCHEMA_TYPES:
        yield not_supported(f"{path}.type", kind, _SCHEMA_TYPES)
    if "pattern" in found and not _compiles(found["pattern"]):
        yield bad_value(f"{path}.pattern", found["pattern"], "must be a valid regular expression")
    children = {f"properties[{key}]": child for key, child in (found.get("properties") or {}).items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            children[key] = found[key]
    for key, child in children.items():
        if not isinstance(child, dict):
            yield bad_value(f"{path}.{key}", child, "must be a schema")
        elif not path.endswith("openAPIV3Schema") or key != "properties[metadata]":
            yield from _schema_errors(f"{path}.{key}", child)


def _compiles(pattern: object) -> bool:
    try:
        re.compile(str(pattern))
    except re.error:
        return False
    return True
