"""Files whose beginning is given back to the file system while offsets in them stay as they are."""

from __future__ import annotations

import ctypes

_KEEP_SIZE_AND_PUNCH_HOLE = 3
_libc = ctypes.CDLL(None, use_errno=True)


def punch_hole(descriptor: int, length: int) -> bool:
    """Give the space of the first bytes back; False where the file system cannot. See fallocate(2)."""
    answer = _libc.fallocate(descriptor, _KEEP_SIZE_AND_PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(length))
    return bool(answer == 0)
