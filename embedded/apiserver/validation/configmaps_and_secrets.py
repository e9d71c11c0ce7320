"""Field errors of ConfigMaps and Secrets. Rules and words: Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator

from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed, required, too_long
from embedded.apiserver.apimachinery.objects import Object

_MOST_BYTES = 1 << 20
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_SETTLED = "field is immutable when `immutable` is set"
# What the data of a typed secret must hold.
_NEEDED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_FILLED_KEYS = frozenset({"ssh-privatekey"})
_JSON_KEYS = frozenset({".dockercfg", ".dockerconfigjson"})
_ACCOUNT_NAME = "kubernetes.io/service-account.name"


def config_map_errors(config_map: Object) -> Iterator[FieldError]:
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    for key in data:
        yield from key_errors(f"data[{key}]", key)
        if key in binary:
            yield bad_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from key_errors(f"binaryData[{key}]", key)
    if _text_bytes(data) + _decoded_bytes(binary) > _MOST_BYTES:
        yield too_long("[]", _MOST_BYTES)


def secret_errors(secret: Object) -> Iterator[FieldError]:
    data = secret.get("data") or {}
    for key in data:
        yield from key_errors(f"data[{key}]", key)
    if _decoded_bytes(data) > _MOST_BYTES:
        yield too_long("data", _MOST_BYTES)
    for key in _NEEDED_KEYS.get(secret["type"], ()):
        if key not in data or (key in _FILLED_KEYS and not data[key]):
            yield required(f"data[{key}]")
        elif key in _JSON_KEYS:
            yield from _json_errors(f"data[{key}]", data[key])
    if secret["type"] == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield required("data[username]")
        yield required("data[password]")
    annotations = secret["metadata"].get("annotations") or {}
    if secret["type"] == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT_NAME):
        yield required(f"metadata.annotations[{_ACCOUNT_NAME}]")


def _json_errors(path: str, data: str) -> Iterator[FieldError]:
    try:
        json.loads(b64decode(data))
    except ValueError:
        yield bad_value(path, "<secret contents redacted>", "must be JSON")


def key_errors(path: str, key: str) -> Iterator[FieldError]:
    """Of a key of a ConfigMap or Secret."""
    if len(key) > 253:
        yield bad_value(path, key, "must be no more than 253 characters")
    if not _KEY.fullmatch(key):
        yield bad_value(path, key, _KEY_RULE)
    if key in (".", ".."):
        yield bad_value(path, key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield bad_value(path, key, "must not start with '..'")


def _text_bytes(data: Object) -> int:
    return sum(len(value.encode()) for value in data.values())


def _decoded_bytes(data: Object) -> int:
    """Of base64 texts, without decoding them."""
    return sum(len(value) // 4 * 3 - value.count("=", -2) for value in data.values())


def config_map_changes(config_map: Object, old: Object) -> Iterator[FieldError]:
    yield from _settled_errors(config_map, old, "data", "binaryData")


def secret_changes(secret: Object, old: Object) -> Iterator[FieldError]:
    if secret["type"] != old["type"]:
        yield bad_value("type", secret["type"], "field is immutable")
    yield from _settled_errors(secret, old, "data")


def _settled_errors(obj: Object, old: Object, *keys: str) -> Iterator[FieldError]:
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield not_allowed("immutable", _SETTLED)
    for key in keys:
        if (obj.get(key) or {}) != (old.get(key) or {}):
            yield not_allowed(key, _SETTLED)
