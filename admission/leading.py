"""One replica at a time makes the certificates: whoever holds the lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from kube.lease import LeaseElector
from model.fault import KubernetesFault

log = structlog.get_logger()

Turn = Callable[[float], Awaitable[None]]
"""What is done again and again while leading; Unix seconds."""
_CONFLICT = 409


async def lead(elector: LeaseElector, turn: Turn, pause_seconds: float) -> None:
    """For ever: wait for the lease, work while it is held, and wait again. Cancelled, it hands the lease on.

    Losing it is no failure here: every write carries the version it is about, and all replicas answer reviews anyway.
    """
    try:
        while True:
            await elector.acquire()
            working = asyncio.create_task(_work(turn, pause_seconds))
            try:
                await elector.hold()
            finally:
                working.cancel()
                await asyncio.wait([working])
    finally:
        if elector.leading:
            await elector.release()


async def _work(turn: Turn, pause_seconds: float) -> None:
    told = ""
    while True:
        trouble = await _attempt(turn)
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
