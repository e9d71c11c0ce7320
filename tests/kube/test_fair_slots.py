"""Who has the next slot."""

from __future__ import annotations

import asyncio

from kube.fair_slots import FairSlots


def test_lanes_have_their_turn_one_after_the_other() -> None:
    """However many of one lane came before; in a lane who came first goes first."""

    async def body() -> list[str]:
        slots, done = FairSlots(1), list[str]()

        async def work(lane: str, name: str) -> None:
            async with slots.taken(lane):
                done.append(name)
                await asyncio.sleep(0)

        lanes = [("a", f"a{number}") for number in range(4)] + [("b", "b0"), ("b", "b1"), ("c", "c0")]
        await asyncio.gather(*(work(*each) for each in lanes))
        return done

    assert asyncio.run(body()) == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]


def test_no_more_at_once_than_there_are_slots() -> None:
    async def body() -> int:
        slots, inside, most = FairSlots(3), 0, 0

        async def work(lane: int) -> None:
            nonlocal inside, most
            async with slots.taken(lane):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(work(number % 4) for number in range(20)))
        return most

    assert asyncio.run(body()) == 3


def test_who_gives_up_waiting_takes_no_slot_with_him() -> None:
    """Cancelled while it waits, or at the moment in which it has its turn."""

    async def body() -> None:
        slots, go = FairSlots(1), asyncio.Event()

        async def work() -> None:
            async with slots.taken("a"):
                await go.wait()

        first, second, third = (asyncio.create_task(work()) for _ in range(3))
        await asyncio.sleep(0)
        second.cancel()
        go.set()
        await first
        third.cancel()
        await asyncio.gather(second, third, return_exceptions=True)
        async with asyncio.timeout(1), slots.taken("b"):
            pass

    asyncio.run(body())
