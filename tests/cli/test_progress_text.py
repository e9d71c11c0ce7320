"""How a job goes, in lines."""

from __future__ import annotations

import msgspec
import pytest

from cli.progress_text import counts_text, duration, progress_text
from model.queue import JobProgress, ProgressEvent

RUNS = JobProgress(
    "TrainingJob",
    "Running",
    "MinimumRunning",
    "2 of 2 pods run",
    since_seconds=900.0,
    created_seconds=700.0,
    began_seconds=800.0,
    failures=1,
    most_failures=3,
    evictions=1,
    tasks={"worker": {"running": 2, "pending": 1}, "none": {}},
    nodes=("n1", "n2"),
    events=(
        ProgressEvent("Restarted", "pod w-0 failed", 880.0, True),
        ProgressEvent("MinimumRunning", "2 of 2", 900.0),
    ),
)
LINES = """\
TrainingJob bert  Running for 1 min 40 s
  MinimumRunning: 2 of 2 pods run
  worker: 2 running, 1 pending
  on n1, n2
  ran first 1 min 40 s after its creation, 3 min 20 s ago
  retries: 1 of 3 failures, 1 eviction
  events:
    2 min ago  Warning Restarted: pod w-0 failed
    1 min 40 s ago  MinimumRunning: 2 of 2"""


def test_a_job_that_runs() -> None:
    assert progress_text(RUNS, "bert", 1000.0) == LINES


def test_one_that_has_ended_and_one_that_waits() -> None:
    """How long it took, and since when it waits."""
    ended = msgspec.structs.replace(RUNS, phase="Succeeded", ended_seconds=860.0)
    assert "  ran first 1 min 40 s after its creation, ended 1 min later" in progress_text(ended, "bert", 1000.0)
    waits = JobProgress("TrainingJob", "Queued", created_seconds=700.0, most_failures=3)
    assert progress_text(waits, "bert", 1000.0).splitlines() == [
        "TrainingJob bert  Queued",
        "  created 5 min ago, has not run yet",
        "  retries: 0 of 3 failures, 0 evictions",
    ]


def test_the_last_events_alone() -> None:
    """Ten of them, the newest last."""
    many = tuple(ProgressEvent(f"R{index}", "", float(index)) for index in range(50))
    shown = progress_text(msgspec.structs.replace(RUNS, events=many), "bert", 50.0).splitlines()
    assert len([line for line in shown if " ago  R" in line]) == 10 and shown[-1].endswith("R49: ")


DURATIONS = {0: "0 s", 59: "59 s", 60: "1 min", 3_700: "1 h 1 min", 3_605: "1 h", 90_000: "1 d 1 h", -5: "0 s"}


@pytest.mark.parametrize(("seconds", "text"), DURATIONS.items(), ids=DURATIONS.values())
def test_durations(seconds: float, text: str) -> None:
    """In two units at most."""
    assert duration(seconds) == text


def test_counts() -> None:
    assert counts_text({"running": 2, "failed": 0, "pending": 1}) == "2 running, 1 pending"
