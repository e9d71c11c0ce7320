"""The short name of a pod template: the same template has the same, in the same number of retries."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import msgspec

from embedded.apiserver.apimachinery.objects import Object

TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
# Letters without vowels and look-alikes, as Kubernetes' `rand.SafeEncodeString` has them: no words come out.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Object, collisions: int | None) -> str:
    """Of a defaulted template; `collisions` is how often the name was taken by another one."""
    canonical = msgspec.json.encode(template, order="deterministic")
    number = crc32(canonical + (b"" if collisions is None else str(collisions).encode()))
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))


def without_label(template: Object, key: str) -> Object:
    """The template as its owner wrote it, before the controller told it which one it is."""
    meta = template.get("metadata") or {}
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != key}
    rest = {name: value for name, value in meta.items() if name != "labels"}
    return {**template, "metadata": {**rest, **({"labels": labels} if labels else {})}}


def with_label(template: Object, key: str, value: str) -> Object:
    meta = template.get("metadata") or {}
    return {**template, "metadata": {**meta, "labels": with_entry(meta.get("labels"), key, value)}}


def with_entry(held: Mapping[str, str] | None, key: str, value: str) -> dict[str, str]:
    return {**(held or {}), key: value}
