"""Merge patches (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What makes `wanted` of `before`: fields that differ, and null for those that shall go."""
    changed: dict[str, Any] = {name: None for name in before if name not in wanted}
    for name, value in wanted.items():
        known = before.get(name)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            inner = merge_patch(known, value)
            if inner:
                changed[name] = inner
        elif value != known:
            changed[name] = value
    return changed
