"""When the tick runs: each period, early when woken but not for nothing, and whatever it raises."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.core.observe import usage
from agent.report.status import AgentStatus
from agent.run import loop
from agent.run.loop import TickLoop
from tests.agent.run.stepped import SteppedLoop, run_stepped


class Rig:
    """A loop whose ticks note the time, do `work` and may fail."""

    def __init__(self, period: float = 1.0, descriptor: int | None = None) -> None:
        self.at: list[float] = []
        self.heard = 0
        self.fails = False
        self.work: Callable[[], None] = lambda: None
        self.status = AgentStatus(period, lambda: 0.0)
        self.loop = TickLoop(self._tick, period, self.status, lambda: descriptor, self._hear)

    def _tick(self) -> None:
        self.at.append(asyncio.get_running_loop().time())
        self.work()
        if self.fails:
            raise RuntimeError("a bug")

    def _hear(self) -> None:
        self.heard += 1

    async def play(self, seconds: float, wake_at: tuple[float, ...] = ()) -> list[float]:
        """When it ticked, woken at these times."""
        now = asyncio.get_running_loop()
        for at in wake_at:
            now.call_later(at, self.loop.wake)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.loop.run(), seconds)
        return self.at


WAKES: dict[str, tuple[float, tuple[float, ...], list[float]]] = {
    "nothing": (1.0, (), [0, 1, 2, 3]),
    "a longer period": (2.0, (), [0, 2]),
    "the shortest period": (0.5, (), [0, 0.5, 1, 1.5, 2, 2.5, 3]),
    "once": (1.0, (0.75,), [0, 0.75, 1.75, 2.75]),
    "right after a tick": (1.0, (0.125,), [0, 0.5, 1.5, 2.5]),
    "without end": (1.0, tuple(n / 64 for n in range(128)), [0, 0.5, 1, 1.5, 2, 3]),
}


@pytest.mark.parametrize(("period", "wakes", "expected"), WAKES.values(), ids=WAKES.keys())
def test_ticks(period: float, wakes: tuple[float, ...], expected: list[float]) -> None:
    """A period lies between two ticks at the most, half a second at the least; none of them counts as late."""

    async def main() -> None:
        rig = Rig(period)
        assert await rig.play(3.25, wakes) == expected
        assert rig.status.late_ticks == 0

    run_stepped(main())


def test_no_tick_measures_nothing() -> None:
    """A pass sooner than the shortest interval of a rate costs a whole tick and gives none."""
    assert loop._SOONEST_SECONDS >= usage._SHORTEST_INTERVAL_SECONDS


def test_a_failing_tick_stops_nothing() -> None:
    """Counted and told each time; the next one comes as ever."""

    async def main() -> None:
        rig = Rig()
        rig.fails = True
        with capture_logs() as logs:
            assert await rig.play(2.5) == [0, 1, 2]
        assert rig.loop.failed_ticks == len(logs) == 3

    run_stepped(main())


def test_a_late_tick_is_counted() -> None:
    """Something held the event loop for 1.75 s: one late tick, and everybody else runs before it."""

    async def main() -> None:
        rig, now = Rig(), asyncio.get_running_loop()
        assert isinstance(now, SteppedLoop)

        def stall() -> None:
            now.stall(1.75)
            rig.work = lambda: None

        rig.work = stall
        assert await rig.play(3.5) == [0, 1.75 + 0.1, 2.85]
        assert rig.status.late_ticks == 1

    run_stepped(main())


def test_a_new_cgroup_starts_a_tick() -> None:
    """Whoever lists pods hears of it too; one event, one tick."""

    async def main() -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        rig = Rig(descriptor=reading)

        def read() -> None:
            with contextlib.suppress(BlockingIOError):
                os.read(reading, 1)

        rig.work = read
        asyncio.get_running_loop().call_later(0.75, os.write, writing, b"x")
        assert await rig.play(2.5) == [0, 0.75, 1.75]
        assert rig.heard == 1
        os.close(reading)
        os.close(writing)

    run_stepped(main())


def test_what_cannot_be_waited_for_ends_no_loop(tmp_path: Path) -> None:
    """An ordinary file takes no watch of epoll, as no file does once root in a container has used all of root's up."""

    async def main() -> None:
        with (tmp_path / "events").open("w") as file:
            assert await Rig(descriptor=file.fileno()).play(2.5) == [0, 1, 2]

    run_stepped(main())


def test_any_thread_may_wake_it() -> None:
    """The brake does, also in the moment in which the agent ends."""

    async def main() -> Rig:
        rig = Rig(period=60.0)
        running = asyncio.create_task(rig.loop.run())
        while not rig.at:
            await asyncio.sleep(0)
        threading.Thread(target=rig.loop.wake).start()
        async with asyncio.timeout(20):
            while len(rig.at) < 2:
                await asyncio.sleep(0.01)
        running.cancel()
        return rig

    rig = asyncio.run(main())
    rig.loop.wake()
