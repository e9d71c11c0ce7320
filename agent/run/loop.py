"""The loop that turns the tick, and the event loop it turns in."""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
from collections.abc import Callable, Iterator

import structlog

from agent.report.status import AgentStatus

log = structlog.get_logger()

_LATE_RATIO = 0.5
_SOONEST_SECONDS = 0.5
"""From one tick to the next at least, whatever wakes it: over less no rate is measured."""
_REST_SECONDS = 0.1
"""Even a slow tick leaves so much to everybody else."""


def event_loop() -> asyncio.AbstractEventLoop:
    """One that waits by poll(2), as gRPC in this process does from now on.

    What all programs of root together may wait for by epoll is bounded (epoll(7), max_user_watches), and whoever is
    root in a container shares that: with none left a loop by epoll cannot even be made.
    """
    os.environ.setdefault("GRPC_POLL_STRATEGY", "poll")
    return asyncio.SelectorEventLoop(selectors.PollSelector())


class TickLoop:
    """One `tick` a period, one early when the brake or a new cgroup asks; an error of ours never stops the loop.

    `cgroup_events` gives a descriptor that is readable when cgroups came or went, None where there is none;
    `cgroups_changed` is called then.
    """

    def __init__(
        self,
        tick: Callable[[], object],
        period_seconds: float,
        status: AgentStatus,
        cgroup_events: Callable[[], int | None],
        cgroups_changed: Callable[[], None],
    ) -> None:
        self._tick = tick
        self._period = period_seconds
        self._status = status
        self._cgroup_events = cgroup_events
        self._cgroups_changed = cgroups_changed
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.failed_ticks = 0

    def wake(self) -> None:
        """From any thread: tick early."""
        # The event loop of an agent that has just ended is closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        """Never returns."""
        now = self._loop.time
        due = now()
        while True:
            began = now()
            if began > due + self._period * _LATE_RATIO:
                self._status.late_ticks += 1
            due = began + self._period
            self._turn()
            self._wake.clear()
            await asyncio.sleep(max(began + _SOONEST_SECONDS - now(), _REST_SECONDS))
            with self._woken_by_cgroups(), contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(due - now(), 0)):
                    await self._wake.wait()

    def _turn(self) -> None:
        try:
            self._tick()
        except Exception:
            self.failed_ticks += 1
            log.exception("tick failed; limits stay as they are")

    @contextlib.contextmanager
    def _woken_by_cgroups(self) -> Iterator[None]:
        """While waiting, a pod or container that comes or goes starts a tick."""
        descriptor = self._cgroup_events()
        if descriptor is None:
            yield
            return

        def changed() -> None:
            self._loop.remove_reader(descriptor)
            self._wake.set()
            self._cgroups_changed()

        try:
            self._loop.add_reader(descriptor, changed)
        except OSError:
            # What cannot be waited for is found by the next tick.
            yield
            return
        try:
            yield
        finally:
            self._loop.remove_reader(descriptor)
