"""What a controller tells of an object, as a value: plans make it, an Event comes of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event about the object."""

    reason: str
    message: str
    kind: str = "Normal"
