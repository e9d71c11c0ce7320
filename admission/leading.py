"""One replica at a time makes the certificates: whoever holds the lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from kube.leadership import Leadership
from model.fault import KubernetesFault

log = structlog.get_logger()

Turn = Callable[[float], Awaitable[None]]
"""What is done again and again while leading; Unix seconds."""
_CONFLICT = 409


async def lead(campaign: Callable[[], Leadership], turn: Turn, pause_seconds: float) -> None:
    """For ever: wait for the lease, work while it is held, and wait again. Cancelled, it hands the lease on.

    Losing it is no failure here: every write carries the version it is about, and all replicas answer reviews anyway.
    A `campaign` is one leadership, from the wait for it to its end; raises what keeps one from campaigning at all.
    """
    while True:
        async with campaign() as leadership:
            working = asyncio.create_task(_work(leadership, turn, pause_seconds))
            try:
                await leadership.ended.wait()
            finally:
                working.cancel()
                await asyncio.wait([working])
        if leadership.error is not None:
            raise leadership.error


async def _work(leadership: Leadership, turn: Turn, pause_seconds: float) -> None:
    """A turn after each pause, while the lease is renewed in time."""
    told = ""
    await leadership.acquired.wait()
    while True:
        trouble = await _attempt(turn) if leadership.leading() else told
        if trouble and trouble != told:
            log.error("certificates not looked after", error=trouble)
        told = trouble
        await asyncio.sleep(pause_seconds)


async def _attempt(turn: Turn) -> str:
    """What went wrong; somebody else's write in between is an ordinary thing, and the next turn sees it."""
    try:
        await turn(time.time())
    except KubernetesFault as fault:
        return "" if fault.status == _CONFLICT else str(fault)
    return ""
