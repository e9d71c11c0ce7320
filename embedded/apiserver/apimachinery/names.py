"""Syntax rules of names, labels and metadata keys."""

import re
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_network

from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_supported, required, too_long
from embedded.apiserver.apimachinery.objects import Object, dig, encode
from embedded.apiserver.apimachinery.resource_types import ResourceType

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DNS_LABEL = re.compile(_LABEL)
_DNS_1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_PORT_LETTERS = re.compile(r"[-a-z0-9]+")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

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
DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_OPTIONAL_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_SEARCH_PART = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = re.compile(rf"{_SEARCH_PART}(\.{_SEARCH_PART})*")
_SEARCH_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
)
_RESOURCE_FIELDS = tuple(
    f"{group}.{resource}" for group in ("limits", "requests") for resource in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_ANNOTATION_BYTES = 256 * 1024


def dns_label(path: str, text: str) -> Iterator[FieldError]:
    yield from _too_long(path, text, 63)
    if not _DNS_LABEL.fullmatch(text):
        yield bad_value(path, text, _LABEL_RULE)


def dns_1035_label(path: str, text: str) -> Iterator[FieldError]:
    yield from _too_long(path, text, 63)
    if not _DNS_1035_LABEL.fullmatch(text):
        yield bad_value(path, text, DNS_1035_RULE)


def dns_subdomain(path: str, text: str) -> Iterator[FieldError]:
    yield from _too_long(path, text, 253)
    if not _SUBDOMAIN.fullmatch(text):
        yield bad_value(path, text, _SUBDOMAIN_RULE)


def _too_long(path: str, text: str, most: int) -> Iterator[FieldError]:
    if len(text) > most:
        yield bad_value(path, text, f"must be no more than {most} characters")


def qualified_name(path: str, key: str, shown: str | None = None) -> Iterator[FieldError]:
    """A label key, an annotation key, a finalizer or a resource name: an optional domain, `/`, a name."""
    for rule in _qualified_rules(key):
        yield bad_value(path, key if shown is None else shown, rule)


def _qualified_rules(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield f"a qualified name {_QUALIFIED_RULE} {_OPTIONAL_PREFIX}"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        if len(prefix) > 253:
            yield "prefix part must be no more than 253 characters"
        if not _SUBDOMAIN.fullmatch(prefix):
            yield f"prefix part {_SUBDOMAIN_RULE}"
    if not name:
        yield "name part must be non-empty"
    elif len(name) > 63:
        yield "name part must be no more than 63 characters"
    if not _QUALIFIED.fullmatch(name):
        yield f"name part {_QUALIFIED_RULE}"


def labels(path: str, found: Object | None) -> Iterator[FieldError]:
    for key, value in (found or {}).items():
        yield from qualified_name(path, key)
        yield from label_value(path, value)


def label_value(path: str, value: str) -> Iterator[FieldError]:
    yield from _too_long(path, value, 63)
    if value and not _QUALIFIED.fullmatch(value):
        yield bad_value(path, value, _VALUE_RULE)


def port_number(path: str, port: int) -> Iterator[FieldError]:
    if not 1 <= port <= 65535:
        yield bad_value(path, port, "must be between 1 and 65535, inclusive")


def port_name(path: str, text: str) -> Iterator[FieldError]:
    """IANA_SVC_NAME, as ports of containers and services are named."""
    if len(text) > 15:
        yield bad_value(path, text, "must be no more than 15 characters")
    if not _PORT_LETTERS.fullmatch(text):
        yield bad_value(path, text, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in text):
        yield bad_value(path, text, "must contain at least one letter (a-z)")
    if "--" in text:
        yield bad_value(path, text, "must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        yield bad_value(path, text, "must not begin or end with a hyphen")


def descending_path(path: str, text: str) -> Iterator[FieldError]:
    """A relative path that stays below where it begins."""
    if text.startswith("/"):
        yield bad_value(path, text, "must be a relative path")
    yield from no_backsteps(path, text)


def no_backsteps(path: str, text: str) -> Iterator[FieldError]:
    if ".." in text.split("/"):
        yield bad_value(path, text, "must not contain '..'")


def is_address(text: str, *kinds: type[IPv4Address] | type[IPv6Address]) -> bool:
    """Whether it is an IP address, of one of these kinds where some are named."""
    for kind in kinds or (IPv4Address, IPv6Address):
        try:
            kind(text)
        except AddressValueError:
            continue
        return True
    return False


def ip_address(path: str, text: str) -> Iterator[FieldError]:
    if not is_address(text):
        yield bad_value(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def is_range(text: str) -> bool:
    """Whether it is a range of IP addresses: `10.0.0.0/8`."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def search_domain(path: str, text: str) -> Iterator[FieldError]:
    """Of resolv.conf, where names of services may begin with an underscore."""
    yield from _too_long(path, text, 253)
    if not _SEARCH.fullmatch(text):
        yield bad_value(path, text, _SEARCH_RULE)


def resource_field(path: str, text: str) -> Iterator[FieldError]:
    """A container's amount, as variables and files tell it."""
    if not text:
        yield required(path)
    elif text not in _RESOURCE_FIELDS and not text.startswith(_HUGE_PAGES):
        yield not_supported(path, text, _RESOURCE_FIELDS)


def path_segment(path: str, text: str) -> Iterator[FieldError]:
    """Anything that is one segment of a path, as roles and bindings are named: `system:node`."""
    if text in (".", ".."):
        yield bad_value(path, text, f"may not be '{text}'")
    for letter in "/%":
        if letter in text:
            yield bad_value(path, text, f"may not contain '{letter}'")


# Types whose names become DNS labels, and those whose names are free; everything else has names of subdomains.
_NAME_RULES = {
    "namespaces": dns_label,
    "services": dns_1035_label,
    **{
        f"{plural}.rbac.authorization.k8s.io": path_segment
        for plural in ("clusterrolebindings", "clusterroles", "rolebindings", "roles")
    },
}

# The groups whose objects are checked by `pkg/apis/core/validation`; others take any finalizer of one word.
_STRICT_GROUPS = ("", "apps", "batch", "scheduling.k8s.io")
_SHORT_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_FINALIZER_RULE = "name is neither a standard finalizer name nor is it fully qualified"
_FINALIZER_ADVICE = (
    "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other "
    "finalizer writers"
)


def metadata_errors(rtype: ResourceType, obj: Object) -> Iterator[FieldError]:
    """Everything wrong with an object's metadata."""
    meta = obj["metadata"]
    rule = _NAME_RULES.get(rtype.id, dns_subdomain)
    if prefix := meta.get("generateName"):  # what is appended ends in a letter, so a dash before it is fine
        yield from rule("metadata.generateName", prefix.rstrip("-") + "a" * prefix.endswith("-"))
    if name := meta.get("name"):
        yield from rule("metadata.name", name)
    else:
        yield required("metadata.name", "name or generateName is required")
    if (generation := meta.get("generation") or 0) < 0:
        yield bad_value("metadata.generation", generation, "must be greater than or equal to 0")
    yield from labels("metadata.labels", meta.get("labels"))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        yield from qualified_name("metadata.annotations", key.lower(), key)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATION_BYTES:
        yield too_long("metadata.annotations", _ANNOTATION_BYTES)
    finalizers = meta.get("finalizers") or ()
    for index, finalizer in enumerate(finalizers):
        yield from qualified_name("metadata.finalizers", finalizer)
        if rtype.group in _STRICT_GROUPS:
            yield from whole_finalizer(f"metadata.finalizers[{index}]", finalizer)
    if "foregroundDeletion" in finalizers and "orphan" in finalizers:
        why = "finalizer foregroundDeletion and orphan cannot be both set"
        yield bad_value("metadata.finalizers", finalizers, why)
    yield from _owner_errors(meta.get("ownerReferences") or [])


def whole_finalizer(path: str, finalizer: str) -> Iterator[FieldError]:
    """Of a built-in object: with a domain that says who takes it away, or one that everybody knows."""
    if "/" not in finalizer and finalizer not in _SHORT_FINALIZERS:
        yield bad_value(path, finalizer, _FINALIZER_RULE)


def finalizer_warnings(obj: Object, old: Object | None) -> Iterator[str]:
    """What kube-apiserver tells of the new finalizers of custom objects (`pkg/registry/customresource/strategy.go`)."""
    held = dig(old, "metadata.finalizers") or ()
    for finalizer in obj["metadata"].get("finalizers") or ():
        if finalizer not in held and "/" not in finalizer and finalizer not in _SHORT_FINALIZERS:
            yield f"metadata.finalizers: {encode(finalizer).decode()}: {_FINALIZER_ADVICE}"


def _owner_errors(owners: list[Object]) -> Iterator[FieldError]:
    path = "metadata.ownerReferences"
    for owner in owners:
        version = owner["apiVersion"]
        if version.count("/") > 1 or not version.rpartition("/")[2]:
            yield bad_value(f"{path}.apiVersion", owner["apiVersion"], "version must not be empty")
        for key in ("kind", "name", "uid"):
            if not owner[key]:
                yield bad_value(f"{path}.{key}", owner[key], "must not be empty")
        if (version, owner["kind"]) == ("v1", "Event"):
            yield bad_value(path, owner, "/v1, Kind=Event is disallowed from being an owner")
    controllers = [owner["name"] for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        yield bad_value(
            path,
            owners,
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {controllers[0]} and {controllers[1]}',
        )
