"""Memory that was freed goes back to the kernel; glibc by itself gives back what lies at the end of its heap."""

from __future__ import annotations

import contextlib
import ctypes


def give_memory_back() -> None:
    """Where the C library is another one nothing happens."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
