"""What is wrong with a custom resource definition. Messages are those of k8s.io/apiextensions-apiserver."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from embedded.apiserver.apiextensions import formats
from embedded.apiserver.apiextensions.structural import new_schema_errors, schema_errors
from embedded.apiserver.apimachinery import jsonpath, names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
    too_many,
)
from embedded.apiserver.apimachinery.objects import Object, dig, name_of

APPROVAL = "api-approved.kubernetes.io"
_PROTECTED = re.compile(r"(^|\.)(k8s|kubernetes)\.io$")
_APPROVAL_TEXT = "https://github.com/kubernetes/enhancements/pull/1111"
_SCOPES = ("Cluster", "Namespaced")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST_WARNING = 256  # bytes
_MOST_SELECTABLE = 8
_AT_ROOT_WITH_STATUS = (
    *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items"),
    *("properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"),
)
_Check = Callable[[str, Object], list[FieldError]]
_DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def definition_errors(definition: Object) -> Iterator[FieldError]:
    """Everything wrong with a definition, its defaults in place."""
    spec = definition["spec"]
    if name_of(definition) != f"{spec['names'].get('plural', '')}.{spec.get('group', '')}":
        yield bad_value("metadata.name", name_of(definition), 'must be spec.names.plural+"."+spec.group')
    yield from _approval_errors(definition)
    yield from _group_errors(spec.get("group") or "")
    if not spec.get("scope"):
        yield required("spec.scope")
    elif spec["scope"] not in _SCOPES:
        yield not_supported("spec.scope", spec["scope"], _SCOPES)
    if spec.get("preserveUnknownFields"):
        yield bad_value("spec.preserveUnknownFields", True, "must be false")
    yield from _name_errors(spec["names"])
    yield from _conversion_errors(spec["conversion"])
    yield from _version_errors(spec.get("versions") or [])


def new_definition_errors(definition: Object) -> Iterator[FieldError]:
    """What is held against a definition when it is made, besides."""
    yield from _each_schema_errors(definition["spec"].get("versions") or [], new_schema_errors, {})


def definition_warnings(definition: Object, old: Object | None) -> Iterator[str]:
    """Of new formats that nobody knows: they bind nobody."""
    held = set() if old is None else set(_all_unknown_formats(old))
    yield from (f'unrecognized format "{name}"' for name in _all_unknown_formats(definition) if name not in held)


def _all_unknown_formats(definition: Object) -> Iterator[str]:
    """Once for a schema that all versions share."""
    schemas = [_schema(version) for version in definition["spec"].get("versions") or ()]
    shared = all(schema == schemas[0] for schema in schemas)
    for schema in schemas[:1] if shared else schemas:
        yield from _unknown_formats(schema)


def _unknown_formats(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        form = part.get("format")
        if part.get("type") == "string" and isinstance(form, str) and form and not formats.is_known(form):
            yield form
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _unknown_formats(inner)


def change_errors(definition: Object, old: Object) -> Iterator[FieldError]:
    """What of a definition may not become of an old one."""
    fixed = ["spec.group", "spec.names.plural"]
    if any(c.get("type") == "Established" and c.get("status") == "True" for c in dig(old, "status.conditions") or ()):
        fixed += ["spec.scope", "spec.names.kind"]
    for path in fixed:
        if dig(definition, path) != dig(old, path):
            yield bad_value(path, dig(definition, path), "field is immutable")
    before = {version["name"]: _schema(version) for version in old["spec"].get("versions") or ()}
    yield from _each_schema_errors(definition["spec"].get("versions") or [], new_schema_errors, before)
    served = {version["name"] for version in definition["spec"].get("versions") or ()}
    for index, stored in enumerate(dig(definition, "status.storedVersions") or ()):
        if stored not in served:
            yield bad_value(f"status.storedVersions[{index}]", stored, "must appear in spec.versions")


def _approval_errors(definition: Object) -> Iterator[FieldError]:
    if not _PROTECTED.search(definition["spec"].get("group") or ""):
        return
    path = f"metadata.annotations[{APPROVAL}]"
    told = (dig(definition, "metadata.annotations") or {}).get(APPROVAL)
    if told is None:
        detail = f'protected groups must have approval annotation "{APPROVAL}", see {_APPROVAL_TEXT}'
        yield required(path, detail)
    elif not told.startswith("unapproved") and not (urlsplit(told).scheme and urlsplit(told).netloc):
        detail = (
            f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting with '
            f'"unapproved", see {_APPROVAL_TEXT}'
        )
        yield bad_value(path, told, detail)


def _group_errors(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif wrong := list(names.dns_subdomain("spec.group", group)):
        yield from wrong
    elif "." not in group:
        yield bad_value("spec.group", group, "should be a domain with at least one dot")


def _name_errors(found: Object) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        value, mixed = found.get(key) or "", key.lower().endswith("kind")
        if not value:
            yield required(f"spec.names.{key}")
        elif not _DNS_1035.fullmatch(value.lower() if mixed else value):
            detail = f"may have mixed case, but should otherwise match: {_DNS_1035_RULE}" if mixed else _DNS_1035_RULE
            yield bad_value(f"spec.names.{key}", value, detail)
    for key in ("shortNames", "categories"):
        for index, value in enumerate(found.get(key) or ()):
            if not _DNS_1035.fullmatch(value):
                yield bad_value(f"spec.names.{key}[{index}]", value, _DNS_1035_RULE)
    if found.get("kind") and found.get("kind") == found.get("listKind"):
        yield bad_value("spec.names.listKind", found["listKind"], "kind and listKind may not be the same")


def _conversion_errors(conversion: Object) -> Iterator[FieldError]:
    strategy, webhook = conversion.get("strategy"), conversion.get("webhook") or {}
    if strategy != "Webhook":
        for key, path in (("clientConfig", "webhookClientConfig"), ("conversionReviewVersions",) * 2):
            if webhook.get(key):
                yield not_allowed(f"spec.conversion.{path}", "should not be set when strategy is not set to Webhook")
    if strategy == "Webhook":
        detail = "conversion webhooks are not supported by the embedded cluster; use strategy None"
        yield not_allowed("spec.conversion.strategy", detail)
    elif strategy != "None":
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))


def _version_errors(versions: list[Object]) -> Iterator[FieldError]:
    found = [version.get("name") or "" for version in versions]
    if len(set(found)) < len(found):
        yield bad_value("spec.versions", found, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield bad_value("spec.versions", found, "must have exactly one version marked as storage version")
    for index, name in enumerate(found):
        if not _DNS_1035.fullmatch(name):
            yield bad_value(f"spec.versions[{index}].name", name, _DNS_1035_RULE)
        if dig(versions[index], "schema.openAPIV3Schema") is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
    for index, version in enumerate(versions):
        yield from _deprecation_errors(f"spec.versions[{index}].deprecationWarning", version)
        yield from _subresource_errors(f"spec.versions[{index}].subresources", version.get("subresources") or {})
        if "status" in (version.get("subresources") or {}):
            yield from _root_errors(f"spec.versions[{index}].schema.openAPIV3Schema", _schema(version))
        for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
            yield from _column_errors(f"spec.versions[{index}].additionalPrinterColumns[{at}]", column)
        yield from _selectables_errors(f"spec.versions[{index}].selectableFields", version)
    yield from _each_schema_errors(versions, schema_errors, {})


def _deprecation_errors(path: str, version: Object) -> Iterator[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield bad_value(path, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > _LONGEST_WARNING:
        yield bad_value(path, warning, f"must be <= {_LONGEST_WARNING} characters long")
    if not warning:
        yield bad_value(path, warning, "must not be an empty string")
    if (at := next((index for index, letter in enumerate(warning) if not letter.isprintable()), None)) is not None:
        detail = f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
        yield bad_value(path, warning, detail)


def _root_errors(path: str, schema: Object) -> Iterator[FieldError]:
    """A status of its own is held to `properties[status]` alone, so that nothing else may speak of it."""
    extra = sorted(key for key, value in schema.items() if value and key not in _AT_ROOT_WITH_STATUS)
    if extra:
        fields = " ".join(_AT_ROOT_WITH_STATUS)
        detail = f"only [{fields}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield bad_value(path, ",".join(extra), detail)


def _schema(version: Object) -> Object:
    return dig(version, "schema.openAPIV3Schema") or {}


def _each_schema_errors(versions: list[Object], check: _Check, before: Mapping[str, Object]) -> Iterator[FieldError]:
    """A schema that all versions share is told of once, at the place where v1beta1 had it; none where it was before."""
    schemas = [dig(version, "schema.openAPIV3Schema") for version in versions]
    if any(schema is None for schema in schemas) or not schemas:
        return
    shared = all(schema == schemas[0] for schema in schemas)
    for index, version in enumerate(versions[:1] if shared else versions):
        if before.get(version.get("name") or "") != schemas[index]:
            path = "spec.validation" if shared else f"spec.versions[{index}].schema"
            yield from check(f"{path}.openAPIV3Schema", schemas[index])


def _subresource_errors(path: str, found: Object) -> Iterator[FieldError]:
    paths = found.get("scale")
    if paths is None:
        return
    for key, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value = paths.get(key) or ""
        if not value:
            yield required(f"{path}.scale.{key}")
        elif not value.startswith(start):
            yield bad_value(f"{path}.scale.{key}", value, f"should be a json path under {start[:-1]}")
    selector = paths.get("labelSelectorPath") or ""
    if selector and not selector.startswith((".spec.", ".status.")):
        detail = "should be a json path under either .spec or .status"
        yield bad_value(f"{path}.scale.labelSelectorPath", selector, detail)


def _column_errors(path: str, column: Object) -> Iterator[FieldError]:
    if not column.get("name"):
        yield required(f"{path}.name")
    kind, form = column.get("type") or "", column.get("format") or ""
    if not kind:
        yield required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif kind not in _COLUMN_TYPES:
        yield bad_value(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
    if form and form not in _COLUMN_FORMATS:
        yield bad_value(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    where = column.get("jsonPath") or ""
    if not where:
        yield required(f"{path}.jsonPath")
    elif not where.startswith("."):
        yield bad_value(f"{path}.jsonPath", where, "must be a simple json path starting with .")
    elif not jsonpath.is_valid(where):
        yield bad_value(f"{path}.jsonPath", where, "must be a json path that the embedded cluster can read")


def _selectables_errors(path: str, version: Object) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, selectable in enumerate(version.get("selectableFields") or ()):
        where = selectable.get("jsonPath") or ""
        if where and where in seen:
            yield duplicate(f"{path}[{index}].jsonPath", where)
        else:
            yield from _selectable_errors(f"{path}[{index}]", selectable, version)
        seen.add(where)
    if len(seen) > _MOST_SELECTABLE:
        yield too_many(path, len(seen), _MOST_SELECTABLE)


def _selectable_errors(path: str, found: Object, version: Object) -> Iterator[FieldError]:
    where = found.get("jsonPath") or ""
    if not where:
        yield required(f"{path}.jsonPath")
        return
    inner = _schema(version)
    for step in where.removeprefix(".").split("."):
        inner = (inner.get("properties") or {}).get(step) or {}
    if not where.startswith(".") or not inner:
        yield bad_value(f"{path}.jsonPath", where, "is an invalid path: does not refer to a valid field")
    elif inner.get("type") not in ("boolean", "integer", "string"):
        yield bad_value(f"{path}.jsonPath", where, "must point to a field of type string, boolean, or integer")
    elif where.startswith(".metadata."):
        yield bad_value(f"{path}.jsonPath", where, "must not point to fields in metadata")
