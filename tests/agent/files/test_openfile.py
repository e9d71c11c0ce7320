"""A file that is read again and again, and comes back after it failed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from agent.files.openfile import OpenFile


def open_files() -> set[str]:
    """What this process has open; other tests' files may be closed meanwhile, by the garbage collector."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(entry.readlink()))
    return found


def test_each_read_begins_again(tmp_path: Path) -> None:
    """By the same descriptor, at most so many bytes."""
    path = tmp_path / "level"
    path.write_bytes(b"12345\n")
    file = OpenFile(str(path), 4)
    assert file.fileno() == -1 and file.read() == b"1234"
    opened = file.fileno()
    path.write_bytes(b"9\n")
    assert file.read() == b"9\n" and file.fileno() == opened
    file.close()
    assert file.fileno() == -1


def test_a_failure_closes_it_and_the_next_read_opens_it(tmp_path: Path) -> None:
    """Absent at first, later a directory that cannot be read, then a file."""
    path = tmp_path / "level"
    file = OpenFile(str(path), 16)
    with pytest.raises(FileNotFoundError):
        file.read()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        file.read()
    assert file.fileno() == -1 and str(path) not in open_files()
    path.rmdir()
    path.write_bytes(b"1\n")
    assert file.read() == b"1\n"
    file.close()
