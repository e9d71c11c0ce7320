"""Caches of the kernel that cannot be dropped, by files that a test makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.files.pinnedcaches import PinnedCaches

CACHES = b"SReclaimable:     150 kB\n"
SHARED = CACHES + b"Shmem:             8 kB\n"
SWAP = b"SwapTotal: 1000 kB\nSwapFree: 996 kB\n"
VMSTAT = "workingset_nodes 20\n"
NODES = {
    "two pages have nine nodes each at most": (SHARED, "100 N0=60 N1=40\n", VMSTAT, 18 * 585),
    "others may be dropped": (SHARED, "100 N0=100\n", "workingset_nodes 90\n", 10 * 585),
    "all of them": (SHARED, "100 N0=100\n", "workingset_nodes 200\n", 0),
    "a kernel before 4.20 does not tell which": (SHARED, "10\n", "nr_free_pages 1\n", 10 * 585),
    "no more than there are caches": (CACHES + b"Shmem: 8000 kB\n", "9000\n", VMSTAT, 150 * 1024),
    "swapped out they keep theirs": (CACHES + SWAP, "100\n", VMSTAT, 9 * 585),
    "locked pages keep theirs": (CACHES + b"Unevictable: 4 kB\n", "100\n", VMSTAT, 9 * 585),
    "no files in memory": (CACHES, "100\n", VMSTAT, 0),
    "no number": (SHARED, "many\n", VMSTAT, 0),
    "nothing": (SHARED, "", VMSTAT, 0),
    "no such file": (SHARED, None, VMSTAT, 0),
}


@pytest.mark.parametrize(("meminfo", "objects", "vmstat", "held"), NODES.values(), ids=NODES)
def test_nodes_of_files_in_memory(tmp_path: Path, meminfo: bytes, objects: str | None, vmstat: str, held: int) -> None:
    """By which the kernel finds their pages: a page that stands alone in a large file needs nine."""
    (tmp_path / "vmstat").write_text(vmstat)
    slab = tmp_path / "kernel/slab/radix_tree_node"
    slab.mkdir(parents=True)
    if objects is not None:
        (slab / "total_objects").write_text(objects)
    caches = PinnedCaches(tmp_path, tmp_path)
    assert caches.read(meminfo) == held
    caches.close()


def test_names_in_use_come_on_top(tmp_path: Path) -> None:
    """Both are told anew each time."""
    dentries, slab = tmp_path / "sys/fs", tmp_path / "kernel/slab/radix_tree_node"
    dentries.mkdir(parents=True)
    slab.mkdir(parents=True)
    (dentries / "dentry-state").write_text("20 10 45 0 1 0\n")
    (slab / "total_objects").write_text("4\n")
    caches = PinnedCaches(tmp_path, tmp_path)
    assert caches.read(SHARED) == 10 * 1408 + 4 * 585
    (dentries / "dentry-state").write_text("11 10 45 0 1 0\n")
    assert caches.read(SHARED) == 1408 + 4 * 585
    caches.close()


@pytest.mark.parametrize(
    ("inodes", "names"), [("17 0 0 0 0 0 0", 12), ("17 1 0 0 0 0 0", 11), ("15 0 0 0 0 0 0", 10), ("9 0 0 0 0 0 0", 10)]
)
def test_files_that_are_kept_without_a_name_come_on_top(tmp_path: Path, inodes: str, names: int) -> None:
    """Of 20 names ten are in use, and five tell that there is no such file."""
    folder = tmp_path / "sys/fs"
    folder.mkdir(parents=True)
    (folder / "dentry-state").write_text("20 10 45 0 5 0\n")
    (folder / "inode-state").write_text(f"{inodes}\n")
    caches = PinnedCaches(tmp_path, tmp_path)
    assert caches.read(SHARED) == names * 1408
    caches.close()


def test_a_meminfo_that_cannot_be_understood(tmp_path: Path) -> None:
    """Is told to whoever read it."""
    with pytest.raises(ValueError, match="SReclaimable"):
        PinnedCaches(tmp_path, tmp_path).read(b"SReclaimable: x kB\n")
