"""Work while the lease is held, with all that can happen to a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from admission.leading import lead
from kube.leadership import Leadership
from model.fault import ConfigurationFault, KubernetesFault


class Campaign:
    """A lease that is taken at once, is not renewed in time where told, and lost where told."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.acquired, self.ended, self.error = asyncio.Event(), asyncio.Event(), error
        self.leads = True
        self.left = False

    def leading(self) -> bool:
        return self.leads

    async def __aenter__(self) -> Campaign:
        (self.ended if self.error else self.acquired).set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.left = True


class Campaigns:
    """All of them, the newest last."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.all: list[Campaign] = []
        self._error = error

    def __call__(self) -> Leadership:
        self.all.append(Campaign(self._error))
        return cast(Leadership, self.all[-1])


def play(turn: Callable[[float], Awaitable[None]], scene: Callable[[Campaigns], Awaitable[None]]) -> Campaigns:
    async def run() -> Campaigns:
        campaigns = Campaigns()
        task = asyncio.create_task(lead(campaigns, turn, 0.0))
        async with asyncio.timeout(10):
            await scene(campaigns)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return campaigns

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

    async def scene(campaigns: Campaigns) -> None:
        await until(lambda: len(turns) > 4)

    assert play(turn, scene).all[-1].left


def test_who_lost_the_lease_works_no_more_until_it_is_back() -> None:
    """And takes part again."""
    working: list[bool] = []

    async def turn(now: float) -> None:
        working.append(True)

    async def scene(campaigns: Campaigns) -> None:
        await until(lambda: working)
        campaigns.all[0].ended.set()
        await until(lambda: len(campaigns.all) == 2)
        working.clear()
        await until(lambda: working)

    assert [each.left for each in play(turn, scene).all] == [True, True]


def test_no_turn_without_a_renewal_in_time() -> None:
    """The lease is still ours, but others may take it at any moment."""
    working: list[bool] = []

    async def turn(now: float) -> None:
        working.append(True)

    async def scene(campaigns: Campaigns) -> None:
        await until(lambda: working)
        campaigns.all[0].leads = False
        working.clear()
        for _ in range(100):
            await asyncio.sleep(0)
        assert not working
        campaigns.all[0].leads = True
        await until(lambda: working)

    assert len(play(turn, scene).all) == 1


def test_what_keeps_it_from_campaigning_ends_the_program() -> None:
    """Instead of standing by for ever."""

    async def turn(now: float) -> None: ...

    with pytest.raises(ConfigurationFault):
        asyncio.run(lead(Campaigns(ConfigurationFault("kubeconfig", "no such file")), turn, 0.0))
