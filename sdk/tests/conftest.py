"""Checkpoints in the memory and on the disk, a clock that is set by hand, and a storage that fails when told to."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
