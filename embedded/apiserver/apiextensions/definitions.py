"""Custom resource definitions: from an applied definition to served types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from embedded.apiserver.apiextensions import schema, validation_rules
from embedded.apiserver.apiextensions.definition_validation import APPROVAL
from embedded.apiserver.apiextensions.rule_compiling import rules_of
from embedded.apiserver.apimachinery.field_errors import FieldError
from embedded.apiserver.apimachinery.objects import (
    Object,
    being_deleted,
    condition,
    decode_object,
    dig,
    encode,
    name_of,
    set_condition,
)
from embedded.apiserver.apimachinery.resource_types import (
    CustomVersion,
    PrinterColumn,
    Registry,
    ResourceType,
    ScalePaths,
    version_order,
)
from embedded.apiserver.apimachinery.selectors import EVERYTHING
from embedded.apiserver.storage.object_store import Store


@dataclass(frozen=True, slots=True)
class DefinedVersion:
    """Implements resource_types.CustomVersion, from the schema of a definition."""

    schema: Object | None
    columns: tuple[PrinterColumn, ...]
    storage_api_version: str
    only_version: bool
    scale: ScalePaths | None = None
    storage_schema: Object | None = None
    rules: validation_rules.Node | None = field(default=None, compare=False)  # of the schema

    def default(self, obj: Object) -> None:
        if self.schema is not None:
            schema.default(self.schema, obj)

    def restore(self, obj: Object) -> None:
        """Bring an object that was stored under an earlier definition in line, in place."""
        obj["apiVersion"] = self.storage_api_version
        if self.storage_schema is not None:
            schema.prune(self.storage_schema, obj, root=True)
            schema.default(self.storage_schema, obj)

    def errors(self, obj: Object, old: Object | None) -> Sequence[FieldError]:
        """What the schema does not allow; what `old` has as well is not held against a change."""
        if self.schema is None:
            return ()
        shown, shown_old = _checked(obj), None if old is None else _checked(old)
        found = list(schema.errors(self.schema, shown))
        if found and old is not None:
            found = list(schema.errors(self.schema, shown, old=shown_old))
        return found if self.rules is None else validation_rules.checked(self.rules, shown, shown_old, found)


def _checked(obj: Object) -> Object:
    """What a schema judges. Metadata has its own rules for every type, but for what a definition says of names."""
    meta = obj.get("metadata") or {}
    return {**obj, "metadata": {key: meta[key] for key in ("name", "generateName") if key in meta}}


def served_types(definition: Object) -> Iterator[ResourceType]:
    """The types a stored definition asks to serve, one for each served version, the most stable first."""
    for version in sorted(definition["spec"]["versions"], key=lambda version: version_order(version["name"])):
        if version["served"]:
            yield _type_of(definition, version)


def storage_type(definition: Object) -> ResourceType:
    """The type a definition's objects are stored as, whether or not it is served."""
    return _type_of(definition, _storage_version(definition))


def _storage_version(definition: Object) -> Object:
    found: Object = next(version for version in definition["spec"]["versions"] if version["storage"])
    return found


def _type_of(definition: Object, version: Object) -> ResourceType:
    spec, names = definition["spec"], dig(definition, "status.acceptedNames") or definition["spec"]["names"]
    return ResourceType(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(key for key in ("scale", "status") if key in (version.get("subresources") or {})),
        fields=_selectable(spec["versions"]),
        generation=True,
        unconditional_update=False,
        singular=names["singular"],
        list_kind=names["listKind"],
        custom=_custom_version(definition, version),
    )


def _custom_version(definition: Object, version: Object) -> DefinedVersion:
    spec, storage, scale = definition["spec"], _storage_version(definition), dig(version, "subresources.scale")
    return DefinedVersion(
        schema=dig(version, "schema.openAPIV3Schema"),
        columns=_columns(version),
        storage_api_version=f"{spec['group']}/{storage['name']}",
        only_version=len(spec["versions"]) == 1,
        scale=None if scale is None else _scale_paths(scale),
        storage_schema=dig(storage, "schema.openAPIV3Schema"),
        rules=rules_of(dig(version, "schema.openAPIV3Schema")),
    )


def _selectable(versions: Iterable[Object]) -> tuple[str, ...]:
    """The fields that any version lets select by: objects are indexed once for all versions."""
    paths = (field["jsonPath"] for version in versions for field in version.get("selectableFields") or ())
    return tuple(dict.fromkeys(path.removeprefix(".") for path in paths))


def _scale_paths(scale: Object) -> ScalePaths:
    keys = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    return ScalePaths(*((scale.get(key) or "").removeprefix(".") for key in keys))


def _columns(version: Object) -> tuple[PrinterColumn, ...]:
    found = version.get("additionalPrinterColumns") or []
    return tuple(
        PrinterColumn(
            column["name"],
            column["type"],
            column["jsonPath"],
            column.get("description", ""),
            column.get("priority", 0),
            column.get("format", ""),
        )
        for column in found
    )


def serve(registry: Registry, definition: Object) -> None:
    """Bring the registry in line with a stored definition, which is served only once its names are accepted."""
    withdraw(registry, name_of(definition))
    established = condition(definition, "Established") or {}
    if established.get("status") == "True" and registry.by_id(name_of(definition)) is None:
        registry.register(*served_types(definition))


def withdraw(registry: Registry, type_id: str) -> None:
    """Stop serving a definition's types. A built-in type of that name was never the definition's."""
    found = registry.by_id(type_id)
    if found is not None and found.custom is not None:
        registry.unregister(type_id)


def load(store: Store, rtype: ResourceType, obj: Object) -> None:
    """Put an object back as its type reads it now. How it was written is kept, for the next definition to read."""
    if rtype.custom is None:
        store.load(rtype, obj)
        return
    written = encode(obj)
    rtype.custom.restore(obj)
    store.load(rtype, obj, written if encode(obj) != written else None)


def serve_and_conform(store: Store, registry: Registry, definition: Object) -> None:
    """Serve a definition's types; what is stored already is read by its schema, under the revision it has."""
    name = name_of(definition)
    before, shown = registry.by_id(name), _shown(registry, name)
    serve(registry, definition)
    after = registry.by_id(name)
    if _shown(registry, name) != shown:
        store.end_watches(name)
    if after is None or after.custom is None or _reads_alike(before, after):
        return
    for record in list(store.select(name, EVERYTHING)):
        load(store, after, decode_object(record.original or record.body))


def _shown(registry: Registry, type_id: str) -> list[tuple[ResourceType, CustomVersion | None]]:
    return [(rtype, rtype.custom) for rtype in registry.versions(type_id)]


def _reads_alike(before: ResourceType | None, after: ResourceType) -> bool:
    if before is None or before.custom is None or after.custom is None:
        return False
    old, new = before.custom, after.custom
    same_fields, same_form = before.fields == after.fields, old.storage_api_version == new.storage_api_version
    return same_fields and same_form and old.storage_schema == new.storage_schema


def establish(definition: Object, others: Iterable[Object], now: float) -> None:
    """Accept the definition's names where no other of its group has them, and say so in its status, in place.

    A definition once established stays so, under the names it was accepted with.
    """
    spec, taken = definition["spec"], _taken(definition, others)
    accepted: Object = dict(dig(definition, "status.acceptedNames") or {})
    conflicts = list(_accept(spec["names"], accepted, taken))
    reason, message = conflicts[-1] if conflicts else ("NoConflicts", "no conflicts found")
    _tell(definition, "NamesAccepted", not conflicts, (reason, message), now)
    if not conflicts:
        _tell(definition, "Established", True, ("InitialNamesAccepted", "the initial names have been accepted"), now)
    elif condition(definition, "Established") is None:
        _tell(definition, "Established", False, ("NotAccepted", "not all names are accepted"), now)
    if being_deleted(definition):
        why = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
        _tell(definition, "Terminating", True, why, now)
    _tell_approval(definition, now)
    status = definition["status"]
    status["acceptedNames"] = accepted
    storage = next(version["name"] for version in spec["versions"] if version["storage"])
    stored = status.setdefault("storedVersions", [])
    if storage not in stored:
        stored.append(storage)


def _taken(definition: Object, others: Iterable[Object]) -> set[str]:
    """Names of resources and kinds that other definitions of the group were accepted with."""
    found = set()
    for other in others:
        if other["spec"]["group"] == definition["spec"]["group"] and name_of(other) != name_of(definition):
            names = dig(other, "status.acceptedNames") or {}
            found |= {str(names[key]) for key in ("plural", "singular", "kind", "listKind") if names.get(key)}
            found |= set(names.get("shortNames") or ())
    return found


def _accept(wanted: Object, accepted: Object, taken: set[str]) -> Iterator[tuple[str, str]]:
    """Take over every name that is free; a (reason, message) for each that is not."""
    for key in ("plural", "singular", "shortNames", "kind", "listKind"):
        value = wanted.get(key)
        asked = value if isinstance(value, list) else [value] if value else []
        clashes = [name for name in asked if name in taken]
        if clashes:
            reason = f"{key[0].upper()}{key[1:]}Conflict"
            yield reason, ", ".join(f'"{name}" is already in use' for name in clashes)
        elif asked:
            accepted[key] = value
        else:
            accepted.pop(key, None)
    accepted["categories"] = wanted.get("categories") or []
    if not accepted["categories"]:
        del accepted["categories"]


def _tell(definition: Object, kind: str, holds: bool, why: tuple[str, str], now: float) -> None:
    told = {"type": kind, "status": "True" if holds else "False", "reason": why[0], "message": why[1]}
    set_condition(definition, told, now)


def _tell_approval(definition: Object, now: float) -> None:
    approval = (dig(definition, "metadata.annotations") or {}).get(APPROVAL)
    if approval is None:
        return
    why = ("ApprovedAnnotation", f"approved in {approval}")
    if approval.startswith("unapproved"):
        why = ("UnapprovedAnnotation", f'not approved: "{approval}"')
    _tell(definition, "KubernetesAPIApprovalPolicyConformant", why[0] == "ApprovedAnnotation", why, now)
