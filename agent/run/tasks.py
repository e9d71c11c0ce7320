"""Tasks beside the tick: running all together, saving what was learned, telling that the agent works."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agent.core.observe.prediction import Checkpoint
from kube.wholefile import write_whole
from model.fault import ConfigurationFault


class PredictionSaver:
    """Saves what was learned every `interval_seconds`, and when asked to.

    `save` waits for the disk, so it runs in a thread; one save at a time, since all write the same file.
    """

    def __init__(
        self, learned: Callable[[], Checkpoint], save: Callable[[Checkpoint], object], interval_seconds: float
    ) -> None:
        self._learned = learned
        self._save = save
        self._interval = interval_seconds
        self._saving = asyncio.Lock()

    async def run(self) -> None:
        """Never returns."""
        while True:
            await asyncio.sleep(self._interval)
            await self.save()

    async def save(self) -> None:
        async with self._saving:
            await asyncio.to_thread(self._save, self._learned())


def clear_ready_file(path: Path) -> None:
    """Take away what a killed agent left. Raises ConfigurationFault where the file cannot be made later."""
    if not path.parent.is_dir():
        raise ConfigurationFault(f"--ready-file {path}", "its folder does not exist", "make it first")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        fix = "take it away, or give another path"
        raise ConfigurationFault(f"--ready-file {path}", f"cannot be removed: {error.strerror}", fix) from error


def write_ready_file(path: Path, addresses: Mapping[str, str]) -> None:
    """Whole or not at all. Raises OSError."""
    write_whole(path, msgspec.json.encode(addresses), path.with_suffix(".new"))


async def run_until(
    stopping: asyncio.Event,
    tasks: Sequence[Callable[[], Awaitable[None]]],
    before_the_end: Callable[[], Awaitable[None]],
) -> None:
    """Run all tasks until `stopping` is set; an error in one ends them all and is raised."""
    running: set[asyncio.Future[Any]] = {asyncio.ensure_future(task()) for task in tasks}
    running.add(asyncio.ensure_future(stopping.wait()))
    try:
        # A task may end by itself; every other end is a stop or an error.
        while not stopping.is_set():
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
                running.discard(task)
        await before_the_end()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
