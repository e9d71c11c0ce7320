"""The demonstration ends by itself, says what it measured, and cleans up however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.e2e.conftest import CGROUPS, until


def clusters() -> set[str]:
    """The names of embedded clusters' cgroups on this machine."""
    return {path.name for path in CGROUPS.glob("*/sublet-*")}


@pytest.mark.timeout(150)
def test_the_demonstration_runs_to_its_end(tmp_path: Path) -> None:
    """Short phases: three rows, a verdict, all requests sent, nothing left; whether it was better is not for a test."""
    before, results = clusters(), tmp_path / "results.json"
    command = [sys.executable, "-m", "cli", "demo", "--phase-seconds", "6", "--json", str(results)]
    # Logs of a demonstration whose checks fail stay in TMPDIR; a unix socket below it needs a short path.
    with tempfile.TemporaryDirectory(prefix="demo-") as short:
        environment = os.environ | {"TMPDIR": short}
        done = subprocess.run(command, capture_output=True, text=True, timeout=140, cwd=tmp_path, env=environment)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(results.read_text())
    assert [phase["name"] for phase in found["phases"]] == ["alone", "today", "sublet"]
    assert all(phase["all"]["requests"] == found["phases"][0]["all"]["requests"] > 100 for phase in found["phases"])
    assert all(phase["cpu_pct"] > 5 for phase in found["phases"])
    assert found["phases"][1]["batch_cpu_seconds"] > 0
    assert found["checks"]["nothing_left"]
    assert clusters() <= before
    for expected in ("the same load, three times", "machine: ", "p99 in the surge", "batch-cpu offered"):
        assert expected in done.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demonstration_cleans_up(number: signal.Signals, code: int) -> None:
    """In the middle of a phase, with pods and a load generator running."""
    before = clusters()
    with tempfile.TemporaryFile("w+") as output:
        demo = subprocess.Popen([sys.executable, "-m", "cli", "demo"], stdout=output, stderr=output)
        try:
            assert until(lambda: "requests a second" in os.pread(output.fileno(), 9999, 0).decode(), 40)
            demo.send_signal(number)
            assert demo.wait(40) == code
        finally:
            demo.kill()
            demo.wait()
        assert "Traceback" not in os.pread(output.fileno(), 9999, 0).decode()
    assert until(lambda: clusters() <= before)
