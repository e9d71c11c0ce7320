"""A child process cannot outlive its parent, tells when it is ready, and is stopped within its bound."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.child_process import Child, ProgramFault, how_it_ended, last_words
from embedded.tests.dummies import alive, dummy, kill, lines_of, until

_PARENT = """
import asyncio, sys
from pathlib import Path
from embedded.child_process import Child
async def main():
    child = await Child.start("dummy", sys.argv[2:], Path(sys.argv[1]))
    print(child.pid, flush=True)
    await child.wait()
asyncio.run(main())
"""


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """The kernel sends it SIGTERM, so that it ends in good order."""
    journal = tmp_path / "journal"
    argv = dummy("child", tmp_path / "ready", journal)
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path / "log"), *argv], stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert until(lambda: (tmp_path / "ready").exists())
    finally:
        kill(parent.pid, signal.SIGKILL)
        parent.wait()
    assert until(lambda: not alive(pid))
    assert lines_of(journal)[-1] == "child stopped"


def test_a_child_that_ignores_sigterm_is_killed_after_the_bound(tmp_path: Path) -> None:
    """Together with what it started itself."""
    script = "trap '' TERM; sleep 60 & echo $! > grandchild; echo '{}' > ready; wait; sleep 60"

    async def story() -> int:
        ready = tmp_path / "ready"
        argv = ["/bin/sh", "-c", f"cd {tmp_path}; {script}"]
        child = await Child.start("stubborn", argv, tmp_path / "log", ready)
        await child.wait_ready(10)
        return await child.stop(0.2)

    assert asyncio.run(story()) == -signal.SIGKILL
    grandchild = int((tmp_path / "grandchild").read_text())
    assert until(lambda: not alive(grandchild))


def test_a_child_that_is_late_is_a_fault(tmp_path: Path) -> None:
    """The fault says how long was waited and where its log is."""

    async def story() -> None:
        child = await Child.start("slow", ["/bin/sleep", "60"], tmp_path / "log", tmp_path / "ready")
        try:
            await child.wait_ready(0.1)
        finally:
            await child.stop(5)

    with pytest.raises(ProgramFault, match=r"slow: not ready after 0 s \(see .*log\)"):
        asyncio.run(story())


def test_an_interpreter_that_cannot_be_run_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the program and the cause, as for a user who may not enter the interpreter's directory."""
    (tmp_path / "python").write_text("not executable")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(ProgramFault, match=r"quick: cannot start .*/python: Permission denied"):
        asyncio.run(Child.start("quick", ["/bin/true"], tmp_path / "log"))


def test_what_was_said_before_a_signal_is_not_the_cause(tmp_path: Path) -> None:
    """Only the signal is named."""

    async def story() -> str:
        ready = tmp_path / "ready"
        argv = ["/bin/sh", "-c", f"echo all is well; echo '{{}}' > {ready}; exec sleep 60"]
        child = await Child.start("killed", argv, tmp_path / "log", ready)
        await child.wait_ready(10)
        kill(child.pid, signal.SIGKILL)
        await child.wait()
        return child.last_words()

    assert asyncio.run(story()) == "was ended by SIGKILL"


def test_an_old_ready_file_is_not_believed(tmp_path: Path) -> None:
    """What an earlier start wrote is removed first."""
    ready = tmp_path / "ready"
    ready.write_text('{"old": 1}')

    async def story() -> None:
        child = await Child.start("quick", ["/bin/false"], tmp_path / "log", ready)
        await child.wait_ready(10)

    with pytest.raises(ProgramFault, match="exit code 1"):
        asyncio.run(story())


def test_what_an_earlier_life_said_is_not_the_cause(tmp_path: Path) -> None:
    """All lives write to one log; the reason of an end is what this one said last."""

    async def ended(script: str) -> str:
        child = await Child.start("again", ["/bin/sh", "-c", script], tmp_path / "log")
        await child.wait()
        return child.last_words()

    assert asyncio.run(ended("echo error: no lease; exit 1")) == "no lease"
    assert asyncio.run(ended("echo ValueError: odd; exit 1")) == "ValueError: odd"
    assert asyncio.run(ended("exit 3")) == "ended with exit code 3"


@pytest.mark.parametrize(
    ("case", "log", "expected"),
    [
        ("empty", "", ""),
        ("the last line", "one\ntwo\n\n", "two"),
        ("an error before a warning", "error: no root\nRuntimeWarning: x\n", "no root"),
        ("the last error", "error: one\nerror: two\n", "two"),
        (
            "several errors at once",
            "  +-+---- 1 ----\n    | TypeError: x is None\n    +---------\n",
            "TypeError: x is None",
        ),
    ],
)
def test_last_words(tmp_path: Path, case: str, log: str, expected: str) -> None:
    """The last error line without that word, or else the last line."""
    path = tmp_path / "log"
    path.write_text(log)
    assert last_words(path) == expected


@pytest.mark.parametrize(
    ("code", "text"), [(None, "still runs"), (3, "ended with exit code 3"), (-9, "was ended by SIGKILL")]
)
def test_how_it_ended(code: int | None, text: str) -> None:
    """An exit code or a signal, in words."""
    assert how_it_ended(code) == text
