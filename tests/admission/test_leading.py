"""Work while the lease is held, with all that can happen to a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from admission.leading import lead
from kube.lease import LeaseElector
from model.fault import KubernetesFault


class Elector:
    """A lease that is taken at once and lost when told."""

    def __init__(self) -> None:
        self.leading = False
        self.taken = 0
        self.released = False
        self.lost = asyncio.Event()

    async def acquire(self) -> None:
        self.leading = True
        self.taken += 1

    async def hold(self) -> None:
        self.lost.clear()
        await self.lost.wait()
        self.leading = False

    async def release(self) -> None:
        self.released = True


def play(turn: Callable[[float], Awaitable[None]], scene: Callable[[Elector], Awaitable[None]]) -> Elector:
    async def run() -> Elector:
        elector = Elector()
        task = asyncio.create_task(lead(cast(LeaseElector, elector), turn, 0.0))
        async with asyncio.timeout(10):
            await scene(elector)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return elector

    return asyncio.run(run())


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_faults_end_nothing() -> None:
    """Another's write in between, an API server that is away: the next turn comes."""
    turns: list[float] = []

    async def turn(now: float) -> None:
        turns.append(now)
        raise KubernetesFault("x", "no", status=409 if len(turns) % 2 else 500)

    async def scene(elector: Elector) -> None:
        await until(lambda: len(turns) > 4)

    assert play(turn, scene).released


def test_who_lost_the_lease_works_no_more_until_it_is_back() -> None:
    """And takes part again."""
    working: list[bool] = []

    async def turn(now: float) -> None:
        working.append(True)

    async def scene(elector: Elector) -> None:
        await until(lambda: working)
        elector.lost.set()
        await until(lambda: elector.taken == 2)
        working.clear()
        await until(lambda: working)

    play(turn, scene)
