"""What pods of a ResourceFlavor get, as its object has it; anything unreadable counts as nothing here, and is told by
those who read flavours for their quota.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_labels: dict[str, str] | None = None
    tolerations: list[dict[str, Any]] | None = None


def flavor_place(spec: object) -> tuple[Mapping[str, str], tuple[Mapping[str, Any], ...]]:
    """Labels of its nodes, and the tolerations."""
    try:
        told = msgspec.convert(spec or {}, _Spec)
    except (msgspec.ValidationError, RecursionError):
        return {}, ()
    return told.node_labels or {}, tuple(told.tolerations or ())
