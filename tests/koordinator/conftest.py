"""The documents' reader, and the builders of the admission program's tests, made importable."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "admission")]
