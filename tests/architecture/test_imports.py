"""The agent's image stays small: what the agent imports is known."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("heavy", ["numpy", "cryptography", "hypothesis", "scheduler", "local", "cli"])
def test_the_agent_does_not_import(heavy: str) -> None:
    """Neither arrays, nor the embedded cluster, nor the other program."""
    command = f"import agent.__main__, sys; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], timeout=60).returncode == 0
