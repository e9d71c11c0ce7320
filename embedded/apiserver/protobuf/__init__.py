"""Which field of a protobuf message is which field of the JSON form, for the kinds served here.

Field numbers and JSON names are those of the Go types in k8s.io/api and k8s.io/apimachinery (Apache-2.0).
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from pathlib import Path

import msgspec

DATA = Path(__file__).parent / "messages.json.z"
_META = "meta/v1"
# group → the directory of its Go types
DIRECTORIES = {
    "": "core",
    "admissionregistration.k8s.io": "admissionregistration",
    "apps": "apps",
    "authentication.k8s.io": "authentication",
    "authorization.k8s.io": "authorization",
    "batch": "batch",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "events.k8s.io": "events",
    "networking.k8s.io": "networking",
    "policy": "policy",
    "rbac.authorization.k8s.io": "rbac",
    "scheduling.k8s.io": "scheduling",
}


class Field(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One field: its JSON name (empty: its fields belong to the message around it) and how to read it.

    `kind` is text, int, bool, bytes, message, time, microtime, quantity, intorstring, json or map; `of` is the name
    of the message, or the kind of a map's values. Go writes a field that is no pointer even when it is unset:
    `keep_zero` tells where a zero is a value all the same.
    """

    name: str
    kind: str
    of: str = ""
    many: bool = False
    keep_zero: bool = False


Message = dict[int, Field]


@lru_cache(maxsize=1)
def _messages() -> dict[str, Message]:
    return msgspec.json.decode(zlib.decompress(DATA.read_bytes()), type=dict[str, Message])


def message(name: str) -> Message:
    """The fields of a message by its name, such as `core/v1.PodSpec`."""
    return _messages()[name]


def message_of(api_version: str, kind: str) -> Message | None:
    """The fields of a kind; options such as DeleteOptions are spoken in any group."""
    group, _, version = api_version.rpartition("/")
    known = _messages()
    return known.get(f"{DIRECTORIES.get(group, group)}/{version}.{kind}") or known.get(f"{_META}.{kind}")
