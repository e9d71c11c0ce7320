"""With no watch of epoll left to root, as root in a container can bring about for all programs of root."""

from __future__ import annotations

import asyncio
import contextlib
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.limit.brake import BrakePlan
from agent.core.limit.watch import Watch
from agent.edge.brake import BrakeThread
from agent.edge.memorymarks import memory_alarms
from agent.edge.stalltriggers import StallTriggers
from agent.report.status import AgentStatus
from agent.run.loop import TickLoop, event_loop
from cgroup_fixtures.live import MOUNT
from model.decision import Term
from tests.guest.inside.live_node import SPIN, LiveNode, eventually

MOST = Path("/proc/sys/fs/epoll/max_user_watches")
PROC = Path("/proc")
SERVED = """
import asyncio, sys
from agent.run.loop import event_loop
async def main():
    import grpc.aio
    server, address = grpc.aio.server(), "unix:" + sys.argv[1]
    server.add_insecure_port(address)
    await server.start()
    async with grpc.aio.insecure_channel(address) as channel:
        await asyncio.wait_for(channel.channel_ready(), 60)
    await server.stop(None)
    print("served")
with asyncio.Runner(loop_factory=event_loop) as runner:
    runner.run(main())
"""


@contextlib.contextmanager
def no_watches() -> Iterator[None]:
    """Not for a moment longer than a test needs: pytest's plugins wait by epoll."""
    usual = MOST.read_text()
    MOST.write_text("0\n")
    try:
        yield
    finally:
        MOST.write_text(usual)


def test_the_brake_cuts_without_and_hears_again_with(node: LiveNode) -> None:
    """Made and started with none: it looks each interval. Its senses come back with the next watch."""
    layout = node.layout
    alarms = (StallTriggers(MOUNT, layout, PROC), memory_alarms(MOUNT, layout))
    plan = BrakePlan(node.knobs.quota, (Term("x", 198_000),), 198_000, 2000, 140_000, 10_000)
    watch = Watch(plan, online=(layout.burstable,))
    with contextlib.ExitStack() as stack:
        with no_watches():
            brake = BrakeThread(MOUNT, layout, 0.1, node.executor.lower, node.woken.set, alarms)
            stack.callback(brake.stop)
            brake.arm(watch)
            brake.start()
            node.tree.run(node.web.container, SPIN)
            assert node.woken.wait(60) and brake.drain() and brake.alive
            assert not any("PSI" in name or "memory.events" in name for name in brake.mechanisms)

        def hears() -> bool:
            brake.arm(watch)
            return {"PSI triggers 500 ms on 1 cgroup", "memory.events"} <= set(brake.mechanisms)

        assert eventually(hears), brake.mechanisms


def test_the_loop_ticks_and_hears_of_cgroups(node: LiveNode) -> None:
    """By poll, so that nothing is missing."""

    async def main() -> None:
        ticked = asyncio.Event()

        def tick() -> None:
            node.discovery.pods()
            ticked.set()

        status = AgentStatus(60.0, lambda: 0.0)
        running = asyncio.create_task(TickLoop(tick, 60.0, status, node.discovery.fileno, lambda: None).run())
        async with asyncio.timeout(50):
            for made in ("/one", "/two"):
                await ticked.wait()
                ticked.clear()
                node.tree.make(f"{node.job.path}{made}")
            await ticked.wait()
        running.cancel()

    with no_watches():
        with pytest.raises(OSError, match="No space left"), select.epoll() as epoll, MOST.open() as file:
            epoll.register(file, select.EPOLLIN)
        with asyncio.Runner(loop_factory=event_loop) as runner:
            runner.run(main())


def test_grpc_serves_and_connects(tmp_path: Path) -> None:
    """In a process of its own, for what it waits by is decided once. By epoll it would end the process."""
    command = [sys.executable, "-c", SERVED, str(tmp_path / "socket")]
    with no_watches():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "served\n", done.stderr
