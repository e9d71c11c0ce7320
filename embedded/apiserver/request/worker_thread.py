"""Work on large bodies, beside the event loop: the interpreter lets the other clients' requests go on meanwhile.

What is worked on is one request's own; of what is shared it reads records and types, which are replaced as a whole and
never changed. One thread for all of it: large bodies wait for each other, and for nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE_BYTES = 32 << 10  # from which on a body takes longer than most requests as a whole
_thread = ThreadPoolExecutor(1, "large-bodies")


async def in_worker_thread(size_bytes: int, work: Callable[[], T]) -> T:
    """What `work` returns or raises; where the body is large the event loop goes on meanwhile."""
    if size_bytes < LARGE_BYTES:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_thread, work)
