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
        await asyncio.gather(*(turns.review(name[0], 1, lambda name=name: done.append(name)) for name in names))
        return done

    assert asyncio.run(body()) == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]


def test_who_fails_or_gives_up_waiting_takes_no_turn_with_him() -> None:
    """An answer that raises, and requests that are cancelled while they wait, or as their turn comes."""

    async def body() -> str:
        turns = NamespaceTurns()
        first, second, third = (asyncio.create_task(turns.review("a", 1, lambda: 1 / 0)) for _ in range(3))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(ZeroDivisionError):
            await first
        third.cancel()
        await asyncio.gather(second, third, return_exceptions=True)
        async with asyncio.timeout(60):
            return await turns.review("b", 1, lambda: "answered")

    assert asyncio.run(body()) == "answered"


def test_so_many_bytes_of_a_namespace_wait() -> None:
    """Each review is held in memory until its turn; who is alone is never too large."""
    large = 3 << 20

    async def body() -> tuple[bool, ...]:
        turns = NamespaceTurns()
        before = turns.crowded("a", 1 << 30)
        waiting = [asyncio.create_task(turns.review("a", large, lambda: None)) for _ in range(6)]
        await asyncio.sleep(0)
        crowded, other = turns.crowded("a", large), turns.crowded("b", large)
        await asyncio.gather(*waiting)
        async with asyncio.timeout(60):
            while turns.crowded("a", 1 << 30):
                await asyncio.sleep(0.001)
        return before, crowded, other

    assert asyncio.run(body()) == (False, True, False)
