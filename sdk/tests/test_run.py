"""A command that knows nothing of notices gets SIGTERM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SDK = Path(__file__).parent.parent
SAVES = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(143)))\n"
    "print('trains', flush=True)\ntime.sleep(60)\n"
)


def started(notice: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sublet_sdk.run", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SDK), "SUBLET_NOTICE_FILE": str(notice)},
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("by_signal", [False, True], ids=["a notice", "a signal"])
def test_it_saves_and_ends_as_the_command_does(tmp_path: Path, by_signal: bool) -> None:
    notice = tmp_path / "notice"
    notice.write_text("")
    process = started(notice, sys.executable, "-c", SAVES)
    assert process.stdout is not None and process.stdout.readline() == "trains\n"
    if by_signal:
        process.send_signal(signal.SIGTERM)
    else:
        notice.write_text('{"reason": "PreemptionByScheduler"}')
    status, out, err = ended(process)
    assert (status, out) == (143, "saved\n") and ("PreemptionByScheduler" in err) is not by_signal


def test_a_notice_that_is_taken_back_and_another(tmp_path: Path) -> None:
    """Each is told once."""
    notice = tmp_path / "notice"
    counts = (
        "import signal, time\nseen = []\nsignal.signal(signal.SIGTERM, lambda *_: seen.append(1))\nprint('trains', flush=True)\n"
        "while len(seen) < 2: time.sleep(0.05)\nprint('twice', flush=True)\n"
    )
    process = started(notice, sys.executable, "-c", counts)
    assert process.stdout is not None and process.stdout.readline() == "trains\n"
    notice.write_text("one")
    time.sleep(1.0)
    assert process.poll() is None
    notice.write_text("")
    time.sleep(1.0)
    notice.write_text("two")
    assert ended(process)[:2] == (0, "twice\n")


def test_statuses(tmp_path: Path) -> None:
    """Of the command, of a signal, of one that cannot be started, and without one."""
    absent = tmp_path / "absent"
    assert ended(started(absent, "/bin/sh", "-c", "exit 7"))[0] == 7
    assert ended(started(absent, "/bin/sh", "-c", "kill -9 $$"))[0] == 137
    status, _, err = ended(started(absent, "/no/such/program"))
    assert status == 127 and err == "error: /no/such/program cannot be started: No such file or directory\n"
    assert ended(started(absent))[0] == 2
