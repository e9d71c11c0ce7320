"""Runs the SDK's example so that it cannot be done before anybody told it to go: `python slowed.py FILE OPTIONS…`.

After the first steps of a run each takes half a second more for as long as FILE is there.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path
from typing import Any

from sublet_sdk import Session

EXAMPLE = Path(__file__).resolve().parents[3] / "sdk/examples/train.py"
FAST_STEPS = 60
PAUSE_SECONDS = 0.5


def slow_down(file: Path) -> None:
    """Every session of this process."""
    step, taken = Session.step, 0

    def slowed(self: Session, *arguments: Any, **options: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken > FAST_STEPS and file.exists():
            time.sleep(PAUSE_SECONDS)
        return step(self, *arguments, **options)

    Session.step = slowed  # type: ignore[method-assign]


if __name__ == "__main__":
    slow_down(Path(sys.argv[1]))
    sys.argv = [str(EXAMPLE), *sys.argv[2:]]
    runpy.run_path(sys.argv[0], run_name="__main__")
