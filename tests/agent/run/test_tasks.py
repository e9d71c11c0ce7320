"""All tasks together until a stop; one save at a time; a ready file that is never older than the agent."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import msgspec
import pytest

from agent.core.observe.prediction import Checkpoint, PredictionPolicy, PredictionState, checkpoint
from agent.run.optional_parts import OptionalTask
from agent.run.tasks import PredictionSaver, clear_ready_file, run_until, write_ready_file
from model.fault import ConfigurationFault
from tests.agent.run.stepped import run_stepped

EMPTY = checkpoint(PredictionState(), PredictionPolicy())


class Story:
    """Tasks that tell what happens to them."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.stopping = asyncio.Event()

    async def for_ever(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.told.append("ended")

    async def at_once(self) -> None:
        self.told.append("done")

    async def soon_broken(self) -> None:
        await asyncio.sleep(5)
        raise RuntimeError("broken")

    async def stop_later(self) -> None:
        await asyncio.sleep(100)
        self.stopping.set()

    async def last(self) -> None:
        self.told.append("last")


def test_a_stop_ends_all_tasks() -> None:
    """A task may have ended before; what is left to do is done while the others still run."""

    async def main() -> None:
        story = Story()
        await run_until(story.stopping, [story.for_ever, story.at_once, story.stop_later], story.last)
        assert story.told == ["done", "last", "ended"]

    run_stepped(main())


def test_an_error_ends_all_tasks() -> None:
    """Without the tick, the cluster or the publisher there is no agent: whoever started it starts it again."""

    async def main() -> None:
        story = Story()
        with pytest.raises(RuntimeError, match="broken"):
            await run_until(story.stopping, [story.for_ever, story.soon_broken], story.last)
        assert story.told == ["ended"]

    run_stepped(main())


def test_an_error_of_a_guarded_task_ends_nothing() -> None:
    """The brake and the tick go on until the stop."""

    async def main() -> None:
        story = Story()
        guarded = OptionalTask("x", story.soon_broken)
        await run_until(story.stopping, [story.for_ever, guarded.run, story.stop_later], story.last)
        assert story.told == ["last", "ended"] and guarded.failures > 1

    run_stepped(main())


def test_one_save_at_a_time() -> None:
    """The regular save and the last one would else write the same file at once."""
    inside, most, saves = 0, 0, 0
    first_may_end = threading.Event()

    def save(saved: Checkpoint) -> None:
        nonlocal inside, most, saves
        inside, saves = inside + 1, saves + 1
        most = max(most, inside)
        first_may_end.wait(20)
        inside -= 1

    async def main() -> None:
        saver = PredictionSaver(lambda: EMPTY, save, 600)
        both = [asyncio.create_task(saver.save()) for _ in range(2)]
        while not inside:
            await asyncio.sleep(0.001)
        # A second save would be in its thread by now.
        await asyncio.to_thread(lambda: None)
        first_may_end.set()
        await asyncio.gather(*both)

    asyncio.run(asyncio.wait_for(main(), 60))
    assert (most, saves) == (1, 2)


def test_saves_come_regularly() -> None:
    """What was learned until then, each time."""
    learned, saved = [EMPTY, msgspec.structs.replace(EMPTY, cpu_half_life_seconds=1.0)], list[Checkpoint]()
    left = list(learned)

    async def main() -> None:
        with pytest.raises(IndexError):
            await PredictionSaver(lambda: left.pop(0), saved.append, 0).run()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert saved == learned


def test_the_ready_file_of_a_killed_agent_goes_at_once(tmp_path: Path) -> None:
    """Whoever waits for it would ask addresses at which nobody listens; there may be none."""
    path = tmp_path / "ready.json"
    write_ready_file(path, {"http": "127.0.0.1:1"})
    assert json.loads(path.read_text()) == {"http": "127.0.0.1:1"}
    clear_ready_file(path)
    clear_ready_file(path)
    assert list(tmp_path.iterdir()) == []


def test_a_ready_file_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """Told at the start, not when the agent is ready."""
    with pytest.raises(ConfigurationFault, match=r"ready-file .*/no/ready\.json: its folder does not exist"):
        clear_ready_file(tmp_path / "no" / "ready.json")
    (tmp_path / "ready.json").mkdir()
    with pytest.raises(ConfigurationFault, match=r"ready-file .*ready\.json: cannot be removed: Is a directory"):
        clear_ready_file(tmp_path / "ready.json")
