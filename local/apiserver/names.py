"""Syntax rules of names, labels and metadata keys."""

import re
from collections.abc import Iterator

from local.apiserver.objects import Object, dig
from local.apiserver.registry import ResourceType
from local.apiserver.status import FieldError, bad_value, not_allowed, required

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"^{_LABEL}(\.{_LABEL})*$")
_DNS_LABEL = re.compile(rf"^{_LABEL}$")
_QUALIFIED = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_ANNOTATION_BYTES = 256 * 1024
_LABEL_NAMED = frozenset({"namespaces", "services"})  # these become DNS labels


def dns_label(path: str, text: str) -> Iterator[FieldError]:
    if len(text) > 63:
        yield bad_value(path, text, "must be no more than 63 characters")
    elif not _DNS_LABEL.match(text):
        yield bad_value(path, text, _LABEL_RULE)


def dns_subdomain(path: str, text: str) -> Iterator[FieldError]:
    if len(text) > 253:
        yield bad_value(path, text, "must be no more than 253 characters")
    elif not _SUBDOMAIN.match(text):
        yield bad_value(path, text, _SUBDOMAIN_RULE)


def qualified_name(path: str, key: str) -> Iterator[FieldError]:
    """A label key, an annotation key, a finalizer or a resource name: an optional domain, `/`, a name."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.match(prefix)):
        yield bad_value(path, key, f"prefix part {_SUBDOMAIN_RULE}")
    if len(name) > 63:
        yield bad_value(path, key, "name part must be no more than 63 characters")
    elif not _QUALIFIED.match(name):
        yield bad_value(path, key, _KEY_RULE)


def labels(path: str, found: Object | None) -> Iterator[FieldError]:
    for key, value in (found or {}).items():
        yield from qualified_name(path, key)
        if len(value) > 63:
            yield bad_value(path, value, "must be no more than 63 characters")
        elif value and not _QUALIFIED.match(value):
            yield bad_value(path, value, _VALUE_RULE)


def metadata_errors(rtype: ResourceType, obj: Object) -> Iterator[FieldError]:
    """Everything wrong with an object's metadata."""
    meta = obj["metadata"]
    name = meta.get("name") or ""
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif rtype.id in _LABEL_NAMED:
        yield from dns_label("metadata.name", name)
    else:
        yield from dns_subdomain("metadata.name", name)
    yield from labels("metadata.labels", meta.get("labels"))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        yield from qualified_name("metadata.annotations", key.lower())
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATION_BYTES:
        yield not_allowed("metadata.annotations", f"must have at most {_ANNOTATION_BYTES} bytes")
    for finalizer in meta.get("finalizers") or ():
        yield from qualified_name("metadata.finalizers", finalizer)
    yield from _owner_errors(dig(obj, "metadata.ownerReferences") or [])


def _owner_errors(owners: list[Object]) -> Iterator[FieldError]:
    for index, owner in enumerate(owners):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                yield required(f"metadata.ownerReferences[{index}].{key}", f"{key} must not be empty")
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        yield bad_value(
            "metadata.ownerReferences",
            [owner["name"] for owner in controllers],
            "Only one reference can have Controller set to true",
        )
