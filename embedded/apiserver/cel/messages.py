"""The kinds of values that Kubernetes adds to CEL, as protobuf messages: the only objects the engine hands on unread.

Of `AdmissionRequest` and `Namespace` only the fields matter: an expression that names another does not compile. Source:
kubernetes `apiserver/pkg/admission/plugin/cel/compile.go` (BuildRequestType, BuildNamespaceType).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, struct_pb2, timestamp_pb2

PACKAGE = "kubernetes"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "int": _Field.TYPE_INT64,
    "bool": _Field.TYPE_BOOL,
    "double": _Field.TYPE_DOUBLE,
    "bytes": _Field.TYPE_BYTES,
}
_WELL_KNOWN = {
    "timestamp": ".google.protobuf.Timestamp",
    "duration": ".google.protobuf.Duration",
    "dyn": ".google.protobuf.Value",
}
_DEPENDENCIES = (timestamp_pb2, duration_pb2, struct_pb2)
Fields = Mapping[str, str]
"""field → type: a scalar, `timestamp`, `duration`, `dyn` or the name of a message. `[]` before it is a list of them,
`{}` a map of texts to them."""

_GROUP_VERSION = {"group": "string", "version": "string"}
_MESSAGES: dict[str, Fields] = {
    "Quantity": {"numerator": "string", "denominator": "string"},
    "IP": {"text": "string"},
    "CIDR": {"text": "string"},
    "URL": {"text": "string"},
    "Semver": {"text": "string"},
    "Authorizer": {"account": "string"},
    "PathCheck": {"account": "string", "path": "string"},
    "GroupCheck": {"account": "string", "group": "string"},
    "ResourceCheck": dict.fromkeys(
        ("account", "group", "version", "resource", "subresource", "namespace", "name", "field_selector"), "string"
    ),
    "Decision": {"allowed": "bool", "reason": "string"},
    "GroupVersionKind": {**_GROUP_VERSION, "kind": "string"},
    "GroupVersionResource": {**_GROUP_VERSION, "resource": "string"},
    "UserInfo": {"username": "string", "uid": "string", "groups": "[]string", "extra": "{}dyn"},
    "AdmissionRequest": {
        "kind": "GroupVersionKind",
        "resource": "GroupVersionResource",
        "subResource": "string",
        "requestKind": "GroupVersionKind",
        "requestResource": "GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": "UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "NamespaceSpec": {"finalizers": "[]string"},
    "NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), "string"),
        "lastTransitionTime": "timestamp",
    },
    "NamespaceStatus": {"conditions": "[]NamespaceCondition", "phase": "string"},
    "NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), "string"),
        **dict.fromkeys(("labels", "annotations"), "{}string"),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), "timestamp"),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), "int"),
        "finalizers": "[]string",
    },
    "Namespace": {"metadata": "NamespaceMetadata", "spec": "NamespaceSpec", "status": "NamespaceStatus"},
}


def pool_of(messages: Mapping[str, Fields], package: str, *, shared: bool = True) -> Any:
    """A descriptor pool with these messages, in `package`, and those of this module (`shared`)."""
    pool = descriptor_pool.DescriptorPool()
    for module in _DEPENDENCIES:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    if shared:
        pool.AddSerializedFile(_file(_MESSAGES, PACKAGE).SerializeToString())
    pool.AddSerializedFile(_file(messages, package).SerializeToString())
    return pool


def _file(messages: Mapping[str, Fields], package: str) -> descriptor_pb2.FileDescriptorProto:
    dependencies = [module.DESCRIPTOR.name for module in _DEPENDENCIES]
    found = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto2", dependency=dependencies
    )
    for name, fields in messages.items():
        message = found.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields.items(), start=1):
            _add_field(message, package, number, (field, kind))
    return found


def _add_field(message: descriptor_pb2.DescriptorProto, package: str, number: int, field: tuple[str, str]) -> None:
    name, kind = field
    repeated, bare = kind.startswith(("[]", "{}")), kind.removeprefix("[]").removeprefix("{}")
    # Protobuf would make the same JSON name of `fooBar` and `foo_bar`; nobody reads these messages as JSON.
    added = message.field.add(name=name, number=number, label=_label(repeated), json_name=f"f{number}")
    if kind.startswith("{}"):
        entry = message.nested_type.add(name=entry_name(name))
        entry.options.map_entry = True
        _set_type(entry.field.add(name="key", number=1, label=_label(False)), "string", package)
        _set_type(entry.field.add(name="value", number=2, label=_label(False)), bare, package)
        added.type, added.type_name = _Field.TYPE_MESSAGE, f".{package}.{message.name}.{entry.name}"
    else:
        _set_type(added, bare, package)


def _label(repeated: bool) -> _Field.Label.ValueType:
    return _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL


def entry_name(field: str) -> str:
    """What protobuf wants the entries of a map to be called; of two fields it may be the same."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def _set_type(field: _Field, kind: str, package: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = _Field.TYPE_MESSAGE
    field.type_name = _WELL_KNOWN.get(kind) or f".{package}.{kind}"


POOL = pool_of({}, "none")


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))


Quantity, IP, CIDR, URL, Semver = (_class(name) for name in ("Quantity", "IP", "CIDR", "URL", "Semver"))
Authorizer, PathCheck, GroupCheck = (_class(name) for name in ("Authorizer", "PathCheck", "GroupCheck"))
ResourceCheck, Decision = _class("ResourceCheck"), _class("Decision")
