"""What the agent can do without costs nothing but itself: counted, told once a kind, tried again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.run.optional_parts import OptionalPart, OptionalSink, OptionalTask
from tests.agent.run.stepped import run_stepped


class Failing:
    """A sink, or a task, that fails with each of `errors` in turn, after `lasting` seconds; None is a success."""

    def __init__(self, *errors: Exception | None, lasting: float = 0.0) -> None:
        self._errors = list(errors)
        self._lasting = lasting
        self.began: list[float] = []

    def take(self, result: object) -> None:
        self._fail()

    async def run(self) -> None:
        self.began.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self._lasting)
        self._fail()

    def _fail(self) -> None:
        if (error := self._errors.pop(0)) is not None:
            raise error


def test_a_sink_that_fails(build: Any) -> None:
    """Nothing is raised; an error is told when it is the first of its kind, whatever came in between."""
    encoding = UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed")
    sink = OptionalSink("journal", Failing(OSError(5, "x"), OSError(5, "y"), None, encoding, OSError(5, "z")))
    with capture_logs() as logs:
        for _ in range(5):
            sink.take(build.result())
    assert sink.failures == 4 and [(entry["part"], entry["log_level"]) for entry in logs] == [("journal", "error")] * 2


def test_a_task_that_fails_begins_again() -> None:
    """After 1 s, 2 s, 4 s, at most 60 s: until it ends by itself."""
    failing = Failing(*[RuntimeError("can't start new thread")] * 8, None)
    task = OptionalTask("pod_networks", failing.run)
    with capture_logs() as logs:
        run_stepped(task.run())
    assert failing.began == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert task.failures == 8 and len(logs) == 1 and logs[0]["exc_info"]


def test_a_task_that_worked_for_long_begins_again_soon() -> None:
    """What fails once an hour is not punished for it."""
    failing = Failing(*[RuntimeError()] * 3, None, lasting=3600)
    run_stepped(OptionalTask("topology", failing.run).run())
    assert failing.began == [0, 3601, 7202, 10_803]


@pytest.mark.parametrize("end", [asyncio.CancelledError, KeyboardInterrupt])
def test_a_stop_is_no_error(end: type[BaseException]) -> None:
    """Whoever ends the agent is not held up."""
    guard = OptionalPart("x")
    with pytest.raises(end), guard.contained():
        raise end
    assert guard.failures == 0
