"""What is left of memory, on files of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.layout import Layout
from agent.edge.memorylevels import MemoryLevels

MEMINFO = "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    300 kB\n"
FILES = {
    1: ("memory/kubepods", "memory.usage_in_bytes", "cache 1\ninactive_file 1\ntotal_inactive_file 512\ntotal_x 0\n"),
    2: ("kubepods", "memory.current", "anon 1\ninactive_file 512\nactive_file 0\n"),
}


@pytest.mark.parametrize("version", [1, 2])
def test_levels(tmp_path: Path, version: int) -> None:
    """Each is None while its file is absent or says something else, which is counted; and comes back."""
    levels = MemoryLevels(tmp_path, Layout("/kubepods", version), tmp_path)
    assert (levels.available(), levels.kubepods_charge(), levels.kubepods_inactive_file()) == (None, None, None)
    assert levels.unreadable == 3
    folder, charge, stat = FILES[version]
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "meminfo").write_text(MEMINFO)
    (tmp_path / folder / charge).write_text("4096\n")
    (tmp_path / folder / "memory.stat").write_text(stat)
    assert (levels.available(), levels.kubepods_charge(), levels.kubepods_inactive_file()) == (307_200, 4096, 512)
    (tmp_path / "meminfo").write_text("garbage")
    assert levels.available() is None and levels.unreadable == 4
    levels.close()
