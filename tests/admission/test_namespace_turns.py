"""Reviews of many namespaces at once."""

from __future__ import annotations

import asyncio

import pytest

from admission.namespace_turns import NamespaceTurns


def test_namespaces_have_their_turn_one_after_the_other() -> None:
    """However many of one came before; in each who came first goes first."""

    async def body() -> list[str]:
        turns, done = NamespaceTurns(), list[str]()
        names = ["a0", "a1", "a2", "a3", "b0", "b1", "c0"]
        await asyncio.gather(*(turns.review(name[0], lambda name=name: done.append(name)) for name in names))
        return done

    assert asyncio.run(body()) == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]


def test_who_fails_or_gives_up_waiting_takes_no_turn_with_him() -> None:
    """An answer that raises, and requests that are cancelled while they wait, or as their turn comes."""

    async def body() -> str:
        turns = NamespaceTurns()
        first, second, third = (asyncio.create_task(turns.review("a", lambda: 1 / 0)) for _ in range(3))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(ZeroDivisionError):
            await first
        third.cancel()
        await asyncio.gather(second, third, return_exceptions=True)
        async with asyncio.timeout(60):
            return await turns.review("b", lambda: "answered")

    assert asyncio.run(body()) == "answered"
