"""Ctrl-C at any moment: an end without a traceback, and nothing that still runs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

# The moment is the n-th thing the interpreter tells its audit hooks of (an import, a file opened, a child started), so
# that a moment is the same one on every machine. The last line of `seen` is how many there were.
RUN = """
import os, signal, sys
moment, seen, sys.argv = int(sys.argv[1]), 0, ["sublet", *sys.argv[2:]]
def look(event, arguments):
    global seen
    seen += 1
    if seen == moment:
        os.kill(os.getpid(), signal.SIGINT)
from cli.entry import run
sys.addaudithook(look)
run()
"""
CODES = (0, 130, -signal.SIGINT)
NO_CLUSTER = ("up", "--no-process-node", "--listen", "nowhere", "--dir")
# Python's start takes 6,500 of them with today's modules; a moment that never comes is an ordinary run.
EARLY = (1, 2, 3, 5, 8, 20, 50, 100, 200, 400, 800, 1600, 2400, 3200, 4000, 4800, 5600, 6200, 6500)


def interrupted(moment: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, with a SIGINT at that moment."""
    command = [sys.executable, "-c", RUN, str(moment), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("moment", EARLY)
def test_up_ends_without_a_traceback_while_they_start(tmp_path: Path, moment: int) -> None:
    """While modules are imported, options are read and the event loop begins. Nothing can be listened on here."""
    done = interrupted(moment, *NO_CLUSTER, str(tmp_path / "run"))
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr, done.stderr
    assert done.returncode in (*CODES, 2), done.stderr


@pytest.mark.parametrize("moment", [1, 100, 1600, 4000, 6200])
def test_other_commands_end_without_a_traceback(moment: int) -> None:
    """They, too, import for most of their time."""
    done = interrupted(moment, "top", "--help")
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr, done.stderr
    assert done.returncode in CODES


def test_what_nobody_catches_is_still_told() -> None:
    """Only the interrupt is silent."""
    code = "from cli.interrupts import be_raised; be_raised(); raise {}"
    quiet, loud = (
        subprocess.run([sys.executable, "-c", code.format(kind)], capture_output=True, text=True, timeout=60)
        for kind in ("KeyboardInterrupt", "RuntimeError('x')")
    )
    assert (quiet.stderr, quiet.returncode) == ("", -signal.SIGINT)
    assert "RuntimeError: x" in loud.stderr
