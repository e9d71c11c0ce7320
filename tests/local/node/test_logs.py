"""Logs have the kubelet's places, are cut in size and read from any line on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from local.node import logs


@pytest.mark.parametrize(
    ("content", "lines", "tail"),
    [
        pytest.param(b"a\nb\nc\n", None, b"a\nb\nc\n", id="all"),
        pytest.param(b"a\nb\nc\n", 0, b"", id="none"),
        pytest.param(b"a\nb\nc\n", 1, b"c\n", id="one"),
        pytest.param(b"a\nb\nc", 2, b"b\nc", id="last line without newline"),
        pytest.param(b"a\nb\n", 9, b"a\nb\n", id="more than there are"),
        pytest.param(b"", 3, b"", id="empty"),
        pytest.param(b"\n\n\n", 2, b"\n\n", id="empty lines"),
        pytest.param(b"x" * 100_000 + b"\nend\n", 2, b"x" * 100_000 + b"\nend\n", id="a line longer than a block"),
        pytest.param(b"line\n" * 50_000, 20_000, b"line\n" * 20_000, id="over several blocks"),
    ],
)
def test_tail(tmp_path: Path, content: bytes, lines: int | None, tail: bytes) -> None:
    """tailLines counts whole lines from the end."""
    file = tmp_path / "0.log"
    file.write_bytes(content)
    assert content[logs.tail_offset(file, lines) :] == tail


def test_cut(tmp_path: Path, pod: Any) -> None:
    """A large log keeps its end beside it, and the writer goes on in the same file from the start."""
    file = logs.log_file(tmp_path, pod(), "main", 0)
    descriptor = logs.open_log(file)
    os.write(descriptor, b"old" * 100 + b"end")
    assert logs.cut_large(tmp_path, limit_bytes=50) == 1
    os.write(descriptor, b"new")
    os.close(descriptor)
    assert file.read_bytes() == b"new"
    assert file.with_name("0.log.1").read_bytes()[-3:] == b"end"
    assert file.with_name("0.log.1").stat().st_size == 50
    assert logs.cut_large(tmp_path, limit_bytes=50) == 0


def test_only_the_previous_run_is_kept(tmp_path: Path, pod: Any) -> None:
    """Starting run 2 removes the log of run 0."""
    for run in range(3):
        os.close(logs.open_log(logs.log_file(tmp_path, pod(), "main", run)))
    assert sorted(each.name for each in logs.log_file(tmp_path, pod(), "main", 0).parent.iterdir()) == [
        "1.log",
        "2.log",
    ]


def test_private(tmp_path: Path, pod: Any) -> None:
    """A log is readable by its owner alone."""
    file = logs.log_file(tmp_path, pod(), "main", 0)
    os.close(logs.open_log(file))
    assert file.stat().st_mode & 0o077 == 0


def test_last_words(tmp_path: Path) -> None:
    """The end of a log, bounded in lines and bytes; nothing when there is no log."""
    file = tmp_path / "0.log"
    file.write_text("\n".join(str(number) for number in range(100_000)))
    assert logs.last_words(file).splitlines()[-1] == "99999"
    assert len(logs.last_words(file)) <= 2048 and len(logs.last_words(file).splitlines()) <= 80
    assert logs.last_words(tmp_path / "none.log") == ""
