"""Logs have the kubelet's places, keep their size and times, and are read from any line on."""

from __future__ import annotations

import os
import shutil
import threading
from datetime import UTC, datetime, timedelta
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from embedded.node.logs import files

NOW = datetime(2030, 1, 1, tzinfo=UTC)


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
    with FileIO(file) as log:
        assert content[files.tail_offset(log, lines) :] == tail


def test_rotation(tmp_path: Path) -> None:
    """Of a large log the oldest segments go, on the disk too; the writer and offsets notice nothing."""
    file, keeper, line = tmp_path / "0.log", files.LogKeeper(segment_bytes=1 << 20), b"x" * 1023 + b"\n"
    descriptor = files.open_log(file)
    keeper.add(file)
    for _ in range(8):
        os.write(descriptor, line * 1024)
        keeper.look()
    os.write(descriptor, b"end\n")
    os.close(descriptor)
    with FileIO(file) as log:
        start = files.first_offset(log)
        if start == 0:
            pytest.skip("this file system punches no holes")
        # Whether a line begins right after the hole cannot be told, so one more is left out.
        assert (4 << 20) - len(line) <= file.stat().st_size - start <= 5 << 20
        assert file.stat().st_blocks * 512 <= 6 << 20
        assert log.seek(start) and log.read(1024) == line
        assert log.seek(files.tail_offset(log, 1, start)) and log.read() == b"end\n"
        assert files.tail_offset(log, 1 << 30, start) == start


def test_rotation_without_holes(tmp_path: Path) -> None:
    """A file system that cannot punch holes loses the whole log at once, and the writer goes on from the start."""
    file, keeper = tmp_path / "0.log", files.LogKeeper(segment_bytes=10, punch=lambda descriptor, length: False)
    descriptor = files.open_log(file)
    keeper.add(file)
    os.write(descriptor, b"old" * 100)
    keeper.look()
    os.write(descriptor, b"new\n")
    os.close(descriptor)
    touch(file, NOW)
    keeper.remove(file)
    assert file.read_bytes() == b"new\n"
    assert files.read_times(file).of(0) == nanoseconds(NOW)


def touch(file: Path, moment: datetime) -> None:
    """As if it had last been written then."""
    os.utime(file, (moment.timestamp(), moment.timestamp()))


def nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 10**9


def test_times(tmp_path: Path) -> None:
    """Lines have the time at which the last of those that one look found was written."""
    file, keeper = tmp_path / "0.log", files.LogKeeper()
    file.write_bytes(b"")
    keeper.add(file)
    for number, text in enumerate((b"one\n", b"", b"two\nthree\n")):
        with file.open("ab") as log:
            log.write(text)
        touch(file, NOW + timedelta(seconds=number))
        keeper.look()
    times = files.read_times(file)
    assert [times.of(offset) for offset in (0, 4, 8)] == [nanoseconds(NOW), *[nanoseconds(NOW) + 2 * 10**9] * 2]
    assert [times.offset_since(nanoseconds(NOW) + second * 10**9) for second in (0, 1, 2)] == [0, 4, 4]
    assert files.rfc3339(times.of(0)) == "2030-01-01T00:00:00.000000000Z"


def test_only_the_previous_run_is_kept(tmp_path: Path, pod: Any) -> None:
    """Starting run 2 removes the log of run 0."""
    for run in range(3):
        os.close(files.open_log(files.log_file(tmp_path, pod(), "main", run)))
    assert sorted(each.name for each in files.log_file(tmp_path, pod(), "main", 0).parent.iterdir()) == [
        "1.log",
        "2.log",
    ]


def test_private(tmp_path: Path, pod: Any) -> None:
    """A log is readable by its owner alone."""
    file = files.log_file(tmp_path, pod(), "main", 0)
    os.close(files.open_log(file))
    assert file.stat().st_mode & 0o077 == 0


def test_last_words(tmp_path: Path) -> None:
    """The end of a log, bounded in lines and bytes; nothing when there is no log."""
    file = tmp_path / "0.log"
    file.write_text("\n".join(str(number) for number in range(100_000)))
    assert files.last_words(file).splitlines()[-1] == "99999"
    assert len(files.last_words(file)) <= 2048 and len(files.last_words(file).splitlines()) <= 80
    assert files.last_words(tmp_path / "none.log") == ""


def notes_of(file: Path) -> int:
    return len(files.read_times(file).ends)


def write_at(file: Path, second: int, text: bytes, keeper: files.LogKeeper) -> None:
    with file.open("ab") as log:
        log.write(text)
    touch(file, NOW + timedelta(seconds=second))
    keeper.look()


def test_times_go_with_what_was_taken_away(tmp_path: Path) -> None:
    """Of what was punched out no time is kept; of the rest every one."""
    file, keeper = tmp_path / "0.log", files.LogKeeper(segment_bytes=10, punch=lambda descriptor, length: True)
    file.write_bytes(b"")
    keeper.add(file)
    for second in range(100):
        write_at(file, second, b"012345678\n", keeper)
        assert notes_of(file) <= 2 * files.SEGMENTS
    assert files.read_times(file).of(960) == nanoseconds(NOW) + 96 * 10**9


def test_times_of_a_slow_writer(tmp_path: Path) -> None:
    """Bounded: the newest stay exact, older lines get the time of a later one."""
    file, keeper = tmp_path / "0.log", files.LogKeeper(most_notes=64)
    file.write_bytes(b"")
    keeper.add(file)
    for second in range(1000):
        write_at(file, second, b"\n", keeper)
        assert notes_of(file) <= 64
    times, start = files.read_times(file), nanoseconds(NOW)
    told = [times.of(offset) - start for offset in range(1000)]
    assert told[-32:] == [second * 10**9 for second in range(968, 1000)]
    assert all(at * 10**9 <= each for at, each in enumerate(told)) and told == sorted(told)


def test_times_from_an_offset(tmp_path: Path) -> None:
    """Only what a reader has yet to read is read again."""
    file, keeper = tmp_path / "0.log", files.LogKeeper()
    file.write_bytes(b"")
    keeper.add(file)
    for second in range(10):
        write_at(file, second, b"a\n", keeper)
    times = files.read_times(file, 15)
    assert times.ends == (16, 18, 20)
    assert times.of(15) == files.read_times(file).of(15) == nanoseconds(NOW) + 7 * 10**9
    assert files.read_times(file, 20).ends == ()


def test_a_tree_that_changes_while_it_is_measured(tmp_path: Path) -> None:
    """Directories that vanish count nothing."""
    done = threading.Event()

    def churn() -> None:
        while not done.is_set():
            (tmp_path / "a" / "b" / "c").mkdir(parents=True)
            shutil.rmtree(tmp_path / "a")

    writer = threading.Thread(target=churn)
    writer.start()
    try:
        assert all(files.tree_bytes(tmp_path) >= 0 for _ in range(2000))
    finally:
        done.set()
        writer.join()


def test_the_size_of_a_tree(tmp_path: Path) -> None:
    """All below; nothing where nothing is, or for a directory that cannot be listed."""
    assert files.tree_bytes(tmp_path / "none") == 0
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "file").write_bytes(b"x" * 10_000)
    assert files.tree_bytes(tmp_path) >= 10_000
