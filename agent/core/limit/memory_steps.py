"""Memory limits near what a cgroup holds: v1 refuses a limit below that, and v2 kills for one."""

from __future__ import annotations

from agent.core.observe.knobs import UNLIMITED

_STEP_BYTES = 16 << 20
"""Little enough that a cgroup whose pages are dirtied all the time loses so much within a second; measured."""
_ROOM_PART, _ROOM_BYTES = 16, 4 << 20
"""Above what is held so much is left, in whole steps, for what comes until the limit is in force."""


def limit_above(held: int, limit: int, in_force: int) -> int:
    """The least limit, in bytes, that `held` bytes leave possible where `limit` is below them.

    Never more than is in force, unless that is below `limit`; UNLIMITED where nothing is in force.
    """
    least = -(-(held + held // _ROOM_PART) // _ROOM_BYTES) * _ROOM_BYTES
    return in_force if in_force != UNLIMITED and limit <= in_force < least else least


def step_towards(limit: int, charged: int) -> int | None:
    """The limit one step below what is charged, in bytes; None where no step is left but the last, `limit` itself."""
    lower = charged - _STEP_BYTES
    return lower if lower > limit else None
