"""Memory signs between two ticks, besides the kernel's own alarms: memory's level, and refaults.

Both are looked at each interval, so that a tick comes early also where the kernel counts hardly any stall.
"""

from __future__ import annotations

import msgspec

from agent.core.limit.watch import MemorySigns, WakeCause

_SPAN_SECONDS = 1.0
_SPANS = 10
"""The tick's own rule adds up ten seconds; a tenth of its share in one second is as much."""


class MemoryLook(msgspec.Struct, frozen=True, gc=False):
    """MemAvailable (bytes), and bytes refaulted and reclaimed by the node since boot; None where it cannot be told."""

    monotonic_seconds: float
    available_bytes: int | None
    refaulted_bytes: int | None = None
    reclaimed_bytes: int | None = None


class SignsMemory(msgspec.Struct, frozen=True):
    """What one look must know of those before: the looks of the last second, and which signs were on."""

    looks: tuple[MemoryLook, ...] = ()
    short: bool = False
    thrashes: bool = False


def look(before: SignsMemory, signs: MemorySigns, now: MemoryLook) -> tuple[SignsMemory, tuple[WakeCause, ...]]:
    """A cause once its sign comes on; the tick that it wakes sets the next mark."""
    since = now.monotonic_seconds - _SPAN_SECONDS
    looks = (*(each for each in before.looks if since <= each.monotonic_seconds < now.monotonic_seconds), now)
    after = SignsMemory(looks, _short(signs, now), _thrashes(signs, looks))
    came = {
        WakeCause.MEMORY_LEVEL: after.short and not before.short,
        WakeCause.MEMORY_REFAULTS: after.thrashes and not before.thrashes,
    }
    return after, tuple(cause for cause, is_new in came.items() if is_new)


def _short(signs: MemorySigns, now: MemoryLook) -> bool:
    mark, left = signs.available_bytes, now.available_bytes
    return mark is not None and left is not None and left < mark


def _thrashes(signs: MemorySigns, looks: tuple[MemoryLook, ...]) -> bool:
    """As the tick's rule, of everything on the node: best effort's own part is taken off there."""
    first, last = looks[0], looks[-1]
    refaulted, reclaimed = (
        _grown(first.refaulted_bytes, last.refaulted_bytes),
        _grown(first.reclaimed_bytes, last.reclaimed_bytes),
    )
    if signs.refault_pct is None or last.available_bytes is None or refaulted is None or reclaimed is None:
        return False
    counted = min(refaulted, reclaimed)
    return counted > 0 and counted * 100 * _SPANS >= last.available_bytes * signs.refault_pct


def _grown(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first
