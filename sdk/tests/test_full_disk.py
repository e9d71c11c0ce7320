"""A disk that is full: the save fails and says so, what was saved before stays, and the next one that fits succeeds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SDK = Path(__file__).parent.parent
SAVES = """
import sys
from sublet_sdk import Checkpoints, StorageFault
one = Checkpoints.at(sys.argv[1], "ml/bert")
one.save({"state": b"x" * 1000}, step=1)
try:
    one.save({"state": b"x" * 4_000_000}, step=2)
except StorageFault as fault:
    print("fault:", fault)
print("latest:", one.latest().step)
one.save({"state": b"x" * 1000}, step=3)
print("latest:", one.latest().step, "of", len(one.load().files["state"]))
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs a mount of its own")
def test_a_full_disk(tmp_path: Path) -> None:
    """1 MB in memory, in a mount namespace that ends with the test."""
    script = f'mount -t tmpfs -o size=1m tmpfs "{tmp_path}" && exec "$@"'
    command = [sys.executable, "-c", SAVES, str(tmp_path / "checkpoints")]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *command],
        env={**os.environ, "PYTHONPATH": str(SDK)},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    first, before, after = done.stdout.splitlines()
    assert first.startswith("fault: ") and "No space left on device" in first
    assert (before, after) == ("latest: 1", "latest: 3 of 1000")
