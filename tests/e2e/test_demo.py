"""The demonstration ends by itself, says what it measured, and cleans up however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, cgroups_named, until
from tests.e2e.guides.page import untidy


@contextmanager
def demonstration(*options: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A running demonstration and the file of its output; its work directory and output are gone afterwards."""
    # Logs of a demonstration whose checks fail stay in TMPDIR; a unix socket below it needs a short path.
    with tempfile.TemporaryDirectory(prefix="demo-") as short:
        output = Path(short) / "output"
        command, environment = [sys.executable, "-m", "cli", "demo", *options], os.environ | {"TMPDIR": short}
        with output.open("wb") as file:
            demo = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
        try:
            yield demo, output
        finally:
            demo.kill()
            demo.wait()


def cgroups_of(name: str, output: Path) -> list[Path]:
    """Of the demonstration's cluster."""
    return [path for up in output.parent.glob("*/up") for path in cgroups_named(name, up)] or cgroups_named(
        name, output.parent
    )


def cgroup_name(output: Path) -> str:
    """The name of its cluster's cgroups, once it runs: neighbours have theirs."""
    found = until(lambda: list(output.parent.glob("*/up/endpoints.json")))
    assert found, output.read_text()
    return f"sublet-{json.loads(found[0].read_text())['id']}"


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_the_demonstration_runs_to_its_end(tmp_path: Path) -> None:
    """Short phases: three rows, a verdict, all requests sent, nothing left; whether it was better is not for a test."""
    results = tmp_path / "results.json"
    with demonstration("--anyway", "--phase-seconds", "6", "--json", str(results)) as (demo, output):
        name = cgroup_name(output)
        code, told = demo.wait(140), output.read_text()
    assert code in (0, 1), told
    found = json.loads(results.read_text())
    assert [phase["name"] for phase in found["phases"]] == ["alone", "today", "sublet"]
    assert all(phase["all"]["requests"] == found["phases"][0]["all"]["requests"] > 100 for phase in found["phases"])
    assert all(phase["cpu_pct"] > 5 for phase in found["phases"])
    assert found["phases"][1]["batch_cpu_seconds"] > 0
    assert found["checks"]["nothing_left"]
    assert cgroups_of(name, output) == []
    for expected in ("the same load, three times", "machine: ", "p99 in the surge", "batch-cpu offered"):
        assert expected in told
    assert untidy(told) == []
    assert [line for line in transcript() if figureless(line) not in figureless(told)] == []


def transcript() -> list[str]:
    """The lines of the run that the README shows."""
    block = re.search(r"<!-- transcript: demo -->\n```text\n(.*?)^```$", (ROOT / "README.md").read_text(), re.S | re.M)
    assert block is not None
    return [line for line in block[1].splitlines() if line not in ("", "...")]


def figureless(text: str) -> str:
    """Without what differs from run to run: numbers, what stands for none, blanks, and how it came out."""
    same = re.sub(r"^(ok|FAIL) ", "", re.sub(r"(gang|pods|ceiling): .*", r"\1:", text), flags=re.M)
    return " ".join(re.sub(r"\b[0-9.]+\b|-(?=\s|$)", " N", same).split())


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demonstration_cleans_up(number: signal.Signals, code: int) -> None:
    """In the middle of a phase, with pods and a load generator running."""
    with demonstration("--anyway") as (demo, output):
        name = cgroup_name(output)
        assert until(lambda: "requests a second" in output.read_text())
        assert cgroups_of(name, output)
        demo.send_signal(number)
        assert demo.wait(40) == code
        assert "Traceback" not in output.read_text()
    assert until(lambda: not cgroups_of(name, output))


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_on_a_busy_machine_it_waits_a_minute_and_says_that_nothing_can_be_said() -> None:
    """An exit code of its own, before a cluster is started."""
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin) for _ in range(os.cpu_count() or 1)]
    try:
        with demonstration() as (demo, output):
            began = time.monotonic()
            assert demo.wait(120) == 3, output.read_text()
            assert time.monotonic() - began >= 60
            told = output.read_text()
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert "waiting up to 60 s" in told and "inconclusive: for 60 s other work kept this machine busy" in told
    assert "starting API server" not in told
