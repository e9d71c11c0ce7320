"""The example as a process: run whole, or stopped on the way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SDK = Path(__file__).parent.parent
STEPS = 120


class TrainingRun:
    """One process of the example; `variables` say where checkpoints are."""

    def __init__(self, variables: dict[str, str], step_seconds: float = 0.0, steps: int = STEPS) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SUBLET_")}
        self.process = subprocess.Popen(
            [
                sys.executable,
                str(SDK / "examples/train.py"),
                "--steps",
                str(steps),
                "--step-seconds",
                str(step_seconds),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**kept, "PYTHONPATH": str(SDK), **variables},
        )

    def __enter__(self) -> TrainingRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def wait_for(self, words: str) -> str:
        """The first line that has the words."""
        assert self.process.stdout is not None
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if words in line:
                return line
        raise AssertionError(f"no line with {words!r} in:\n{''.join(seen)}")

    def end(self) -> tuple[int, str]:
        """Exit status and the rest of the output."""
        rest, _ = self.process.communicate(timeout=90)
        return self.process.returncode, rest


def whole(variables: dict[str, str]) -> tuple[int, float]:
    """After which step a run begins that goes to the end, and its loss."""
    with TrainingRun(variables) as run:
        begins = int(re.findall(r"\d+", run.wait_for("begins after step"))[0])
        status, rest = run.end()
    assert status == 0, rest
    return begins, float(re.findall(r"done: loss (\S+)", rest)[0])
