"""Optional parts of the agent: their errors are counted, each kind is logged once, and the rest goes on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

import structlog

from agent.ports import Sink, TickResult

log = structlog.get_logger()

_FIRST_DELAY_SECONDS = 1.0
_LONGEST_DELAY_SECONDS = 60.0


class OptionalPart:
    """One part of the agent, and how often it failed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = 0
        self._told: set[type[Exception]] = set()

    @contextlib.contextmanager
    def contained(self) -> Iterator[None]:
        """An error within ends the block and nothing else."""
        try:
            yield
        except Exception as error:
            self.failures += 1
            if type(error) not in self._told:
                log.exception("failed; the agent goes on", part=self.name, again="is counted, not logged")
            self._told.add(type(error))


class OptionalSink(OptionalPart):
    """A sink whose error costs neither the tick nor the sinks after it."""

    def __init__(self, name: str, sink: Sink) -> None:
        super().__init__(name)
        self._sink = sink

    def take(self, result: TickResult) -> None:
        with self.contained():
            self._sink.take(result)


class OptionalTask(OptionalPart):
    """A task that begins again after an error, at first after a second, later after a minute."""

    def __init__(self, name: str, task: Callable[[], Awaitable[None]]) -> None:
        super().__init__(name)
        self._task = task

    async def run(self) -> None:
        """Returns when the task does."""
        loop, delay = asyncio.get_running_loop(), _FIRST_DELAY_SECONDS
        while True:
            began = loop.time()
            with self.contained():
                return await self._task()
            if loop.time() - began > _LONGEST_DELAY_SECONDS:
                delay = _FIRST_DELAY_SECONDS
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY_SECONDS)
