"""What is left of memory, on files of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.observe.layout import Layout
from agent.edge.memorylevels import MemoryLevels

MEMINFO = "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    300 kB\n"
LISTS = "{0}inactive_anon 1\n{0}active_anon 1\n{0}inactive_file 512\n{0}active_file 1024\n{0}unevictable 1\n"
FILES = {
    1: ("memory/kubepods", "memory.usage_in_bytes", f"cache 1\ninactive_file 1\n{LISTS.format('total_')}"),
    2: ("kubepods", "memory.current", f"anon 1\n{LISTS.format('')}"),
}


@pytest.mark.parametrize("version", [1, 2])
def test_levels(tmp_path: Path, version: int) -> None:
    """Each is None while its file is absent or says something else, which is counted; and comes back."""
    levels = MemoryLevels(tmp_path, Layout("/kubepods", version), tmp_path, tmp_path)
    assert (levels.available(), levels.kubepods_charge(), levels.kubepods_page_cache()) == (None, None, None)
    assert levels.unreadable == 3
    folder, charge, stat = FILES[version]
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "meminfo").write_text(MEMINFO)
    (tmp_path / folder / charge).write_text("4096\n")
    (tmp_path / folder / "memory.stat").write_text(stat)
    assert (levels.available(), levels.kubepods_charge(), levels.kubepods_page_cache()) == (307_200, 4096, 1536)
    (tmp_path / "meminfo").write_text("garbage")
    assert levels.available() is None and levels.unreadable == 4
    levels.close()


def test_available_without_what_names_in_use_hold(tmp_path: Path) -> None:
    """Whoever may write tmpfs has as many as it likes, which the kernel counts as available."""
    levels = MemoryLevels(tmp_path, Layout("/kubepods"), tmp_path, tmp_path)
    (tmp_path / "meminfo").write_text(MEMINFO + "SReclaimable:   290 kB\n")
    assert levels.available() == 307_200
    (tmp_path / "sys/fs").mkdir(parents=True)
    (tmp_path / "sys/fs/dentry-state").write_text("1000 900 45 0 1 0\n")
    assert levels.available() == 307_200 - 140_800 and levels.unreadable == 0
    (tmp_path / "sys/fs/dentry-state").write_text("1000000 900 45 0 1 0\n")
    assert levels.available() == 10 * 1024
    levels.close()


def test_available_without_nodes_of_files_in_memory(tmp_path: Path) -> None:
    """Nine for each page that stands alone in a large file, which the kernel counts as available."""
    levels = MemoryLevels(tmp_path, Layout("/kubepods"), tmp_path, tmp_path)
    (tmp_path / "meminfo").write_text(MEMINFO + "SReclaimable:   290 kB\nShmem:   80 kB\n")
    slab = tmp_path / "kernel/slab/radix_tree_node"
    slab.mkdir(parents=True)
    (slab / "total_objects").write_text("100 N0=100\n")
    assert levels.available() == 307_200 - 100 * 585 and levels.unreadable == 0
    levels.close()


@pytest.mark.parametrize("version", [1, 2])
def test_what_one_cgroup_holds(tmp_path: Path, version: int) -> None:
    """Its charge without page cache, asked for each time; None where it is gone, or one of the two files is."""
    levels = MemoryLevels(tmp_path, Layout("/kubepods", version), tmp_path, tmp_path)
    folder, charge, stat = FILES[version]
    pod = tmp_path / folder / "besteffort/poda"
    pod.mkdir(parents=True)
    (pod / "memory.stat").write_text(stat)
    found = []
    for text in ("4096\n", "8192\n", "1000\n"):
        (pod / charge).write_text(text)
        found.append(levels.held("/kubepods/besteffort/poda"))
    assert found == [2560, 6656, 0], "1,536 of it are page cache"
    (pod / "memory.stat").unlink()
    assert levels.held("/kubepods/besteffort/poda") is None and levels.held("/kubepods/besteffort/podb") is None
