"""The builders beside this file, and the processes of the scheduler's tests, made importable."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "scheduler")]

from tests.scheduler.conftest import certificate, cluster  # noqa: E402, F401
