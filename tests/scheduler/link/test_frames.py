"""Frames over a socket: whole values both ways, and an end that is told by None and False."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from model.report import EvictionCost, PreemptionNotice
from scheduler.link.frames import Frames, FromLinkProcess, LeaderState, ServingFault, ToLinkProcess

COST = EvictionCost(pod_uid="u", gang="d/g", members_above_minimum=1, checkpoint_age_seconds=2.5)


def joined(use: Callable[[Frames[FromLinkProcess], Frames[ToLinkProcess]], Awaitable[None]]) -> None:
    """Both ends of one channel: the scheduler's, and the link process's."""

    async def run() -> None:
        above, below = socket.socketpair()
        one, other = await Frames.over(above, FromLinkProcess), await Frames.over(below, ToLinkProcess)
        try:
            async with asyncio.timeout(30):
                await use(one, other)
        finally:
            one.close()
            other.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "frame",
    [
        ToLinkProcess(),
        ToLinkProcess(LeaderState(leading=True, leader="h:1", diagnostics="127.0.0.1:2")),
        ToLinkProcess(costs={"n1": (COST,), "n2": ()}),
        ToLinkProcess(notices={"u": ("n1", None), "v": ("n2", PreemptionNotice("v", 5.0, "why"))}),
    ],
)
def test_what_goes_down_arrives(frame: ToLinkProcess) -> None:
    """As it was."""

    async def use(above: Frames[FromLinkProcess], below: Frames[ToLinkProcess]) -> None:
        assert await above.write(frame)
        assert await below.read() == frame

    joined(use)


def test_frames_arrive_in_order() -> None:
    """Each whole, also where many wait in the socket, and one that is larger than its buffer."""
    frames = [FromLinkProcess(links={f"n{i}": i % 2 == 0}) for i in range(100)]
    frames.append(FromLinkProcess(trouble=ServingFault("here", "x" * (3 << 20), "mend it")))

    async def use(above: Frames[FromLinkProcess], below: Frames[ToLinkProcess]) -> None:
        async def write() -> None:
            for frame in frames:
                assert await below.write(frame)

        writing = asyncio.create_task(write())
        assert [await above.read() for _ in frames] == frames
        await writing

    joined(use)


def test_who_hangs_up_is_told_to_the_other() -> None:
    """None for who reads; False for who writes, sooner or later."""

    async def use(above: Frames[FromLinkProcess], below: Frames[ToLinkProcess]) -> None:
        above.close()
        assert await below.read() is None
        while await below.write(FromLinkProcess(listening="x" * 4096)):
            await asyncio.sleep(0)

    joined(use)


def test_half_a_frame_is_none() -> None:
    """The other side died in the middle of it."""

    async def run() -> None:
        above, below = socket.socketpair()
        frames = await Frames.over(above, FromLinkProcess)
        below.sendall((100).to_bytes(4) + b"\x90")
        below.close()
        assert await frames.read() is None
        frames.close()

    asyncio.run(run())
