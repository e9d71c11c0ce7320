"""The example: interrupted and run again it ends with the very loss of a run that was not."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest
from training_runs import TrainingRun, whole

from sublet_sdk import Checkpoints


def variables(folder: Path, interval: str = "0") -> dict[str, str]:
    return {
        "SUBLET_CHECKPOINT_URL": str(folder),
        "SUBLET_CHECKPOINT_INTERVAL_SECONDS": interval,
        "SUBLET_CHECKPOINT_MAX": "2",
        "SUBLET_JOB_NAMESPACE": "ml",
        "SUBLET_JOB_NAME": "spirals",
    }


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> float:
    begins, loss = whole(variables(tmp_path_factory.mktemp("whole")))
    assert begins == 0 and loss < 0.65  # it learns: a coin has 0.69
    return loss


@pytest.mark.parametrize("how", ["SIGTERM", "file"])
def test_a_notice_saves_and_the_next_run_goes_on(how: str, tmp_path: Path, uninterrupted: float) -> None:
    """At the step that the process ended after: no step is lost."""
    told, notice = variables(tmp_path / "c"), tmp_path / "notice"
    with TrainingRun({**told, "SUBLET_NOTICE_FILE": str(notice)}, step_seconds=0.2) as run:
        run.wait_for("step 10")
        if how == "file":
            notice.write_text("reclaimed by queue research")
        else:
            run.process.send_signal(signal.SIGTERM)
        status, rest = run.end()
    assert status == 143 and re.search(r"stops after step \d+: (SIGTERM|reclaimed by queue research)", rest), rest
    stopped = int(re.findall(r"stops after step (\d+)", rest)[0])
    assert whole(told) == (stopped, uninterrupted)


def test_a_killed_process_goes_on_from_what_was_saved_last(tmp_path: Path, uninterrupted: float) -> None:
    told = variables(tmp_path / "c", interval="0.3")
    with TrainingRun(told, step_seconds=0.1) as run:
        run.wait_for("begins")
        store = Checkpoints.at(str(tmp_path / "c"), "ml/spirals")
        while store.latest() is None:
            assert run.process.poll() is None
            time.sleep(0.02)
        run.process.kill()
    begins, loss = whole(told)
    assert begins > 0 and loss == uninterrupted


def test_a_bad_environment_is_one_sentence(tmp_path: Path) -> None:
    with TrainingRun({**variables(tmp_path), "SUBLET_CHECKPOINT_MAX": "many"}) as run:
        status, rest = run.end()
    assert (status, rest) == (1, "error: SUBLET_CHECKPOINT_MAX: is 'many'; give a number of 0 or more\n")
