"""The journal's file: whole lines, bounded, readable after whatever happened to it, and never in the tick's way."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.edge.journal import JournalFile, JournalThread
from agent.report.journal import JournalHead, RecordedTick, read
from agent.settings import AgentSettings
from agent.tick import TickState
from model.fault import ConfigurationFault


class Rig:
    """A journal and its folder; `heads` counts how often the head was asked for."""

    def __init__(self, folder: Path, build: Any, largest: int = 1 << 20) -> None:
        self.build = build
        self.path = folder / "j.jsonl"
        self.heads = 0
        self.journal = JournalFile(self.path, largest, self._head)

    def _head(self) -> JournalHead:
        self.heads += 1
        return JournalHead(self.build.layout, AgentSettings(), TickState())

    def take(self, *times: float) -> None:
        for at in times:
            self.journal.take(self.build.result(at))

    def lines(self, name: str = "j.jsonl") -> list[JournalHead | RecordedTick]:
        return list(read((self.path.parent / name).read_bytes().splitlines(keepends=True), name))

    def times(self, name: str = "j.jsonl") -> list[float]:
        return [line.observation.monotonic_seconds for line in self.lines(name) if isinstance(line, RecordedTick)]


@pytest.fixture
def rig(tmp_path: Path, build: Any) -> Rig:
    return Rig(tmp_path, build)


def test_a_head_then_a_line_a_tick(rig: Rig) -> None:
    """On disk as soon as the tick is done; what is written can be read back."""
    rig.journal.begin()
    rig.take(0, 1, 2)
    assert isinstance(rig.lines()[0], JournalHead) and rig.times() == [0, 1, 2]
    rig.journal.close()


def test_a_full_file_is_rotated(tmp_path: Path, build: Any) -> None:
    """Two files at most, each begins with a head, no tick is lost in between."""
    rig = Rig(tmp_path, build, largest=20_000)
    rig.journal.begin()
    rig.take(*range(50))
    rig.journal.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["j.jsonl", "j.jsonl.1"] and rig.heads > 2
    for name in ("j.jsonl", "j.jsonl.1"):
        assert isinstance(rig.lines(name)[0], JournalHead)
        # One line may go beyond; a line is what the first tick after a head takes.
        assert (tmp_path / name).stat().st_size <= 20_000 + 5_000
    kept = rig.times("j.jsonl.1") + rig.times()
    assert kept == list(range(50 - len(kept), 50))


def test_a_restart_keeps_the_file_before(rig: Rig, tmp_path: Path, build: Any) -> None:
    """What another run wrote is FILE.1, also when its last line was cut off."""
    rig.journal.begin()
    rig.take(0, 1)
    rig.journal.close()
    rig.path.write_bytes(rig.path.read_bytes()[:-9])
    again = Rig(tmp_path, build)
    again.journal.begin()
    again.take(7)
    assert (again.times("j.jsonl.1"), again.times()) == ([0], [7])


def test_an_unwritable_path_is_one_line(tmp_path: Path, build: Any) -> None:
    """The path, the cause and the flag."""
    with pytest.raises(ConfigurationFault, match=r"no/j\.jsonl: cannot be written: No such file .*--journal"):
        Rig(tmp_path / "no", build)


def test_a_full_disk_costs_the_journal_only(tmp_path: Path, build: Any) -> None:
    """One error line however long it lasts, at the start too; once there is room it goes on with a head."""
    rig = Rig(tmp_path, build)
    rig.journal._file.close()
    rig.journal._file = io.FileIO("/dev/full", "ab")
    with capture_logs() as logs:
        rig.journal.begin()
        rig.take(0, 1, 2)
    assert [entry["error"] for entry in logs] == ["No space left on device"]
    (tmp_path / "j.jsonl").unlink()
    rig.journal._open()
    rig.take(3, 4)
    assert rig.times() == [4]


def test_a_half_written_line_is_taken_back(rig: Rig) -> None:
    """The journal goes on from the state of the tick that was lost, readable as a whole."""
    rig.journal.begin()
    rig.take(0)
    file, rig.journal._file = rig.journal._file, HalfFull(rig.journal._file)  # type: ignore[assignment]
    with capture_logs() as logs:
        rig.take(1, 2)
    assert [entry["error"] for entry in logs] == ["No space left on device"]
    rig.journal._file = file
    rig.take(3, 4)
    assert rig.times() == [0, 4] and [type(line) for line in rig.lines()] == [
        JournalHead,
        RecordedTick,
        JournalHead,
        RecordedTick,
    ]


def test_a_name_that_is_no_text_costs_the_journal_only(rig: Rig) -> None:
    """A cgroup directory may have any bytes: one error line, no heads that push out what was recorded, then on it goes."""
    rig.journal.begin()
    rig.take(0)
    with capture_logs() as logs:
        for at in (1, 2, 3):
            rig.journal.take(
                rig.build.result(at, observation=rig.build.seen(at, unlisted_pods=("/kubepods/pod\udcff",)))
            )
    assert len(logs) == 1 and "utf-8" in logs[0]["error"] and rig.heads == 1
    rig.take(4, 5)
    assert rig.times() == [0, 5] and rig.heads == 2


class HalfFull:
    """A file on a disk that takes five bytes of what it is given."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, line: bytes) -> int:
        return int(self._file.write(line[:5]))

    def truncate(self, size: int) -> int:
        return int(self._file.truncate(size))


def test_a_failed_rotation_is_tried_again(tmp_path: Path, build: Any) -> None:
    """No tick fails for it, and once the folder can be written again the journal goes on."""
    (tmp_path / "j.jsonl.1" / "in the way").mkdir(parents=True)
    rig = Rig(tmp_path, build, largest=1000)
    rig.journal.begin()
    with capture_logs() as logs:
        rig.take(0, 1, 2)
    assert len(logs) == 1
    (tmp_path / "j.jsonl.1" / "in the way").rmdir()
    (tmp_path / "j.jsonl.1").rmdir()
    rig.take(9)
    rig.journal.close()
    assert rig.times("j.jsonl.1") == [0] and isinstance(rig.lines()[0], JournalHead)


def test_a_file_that_was_moved_away(tmp_path: Path, build: Any) -> None:
    """Somebody keeps what was recorded: the next rotation begins a new file."""
    rig = Rig(tmp_path, build, largest=10_500)
    rig.journal.begin()
    rig.path.rename(tmp_path / "kept")
    rig.take(*range(50))
    # Where the last line filled the file, the newest one has none yet.
    newest = rig.times() or rig.times("j.jsonl.1")
    assert rig.times("kept")[0] == 0 and newest[-1] == 49


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "of another user"])
def test_what_somebody_else_put_there_is_not_written(tmp_path: Path, build: Any, kind: str) -> None:
    """Root would append to any file of the machine by it; where it points nothing is made or changed."""
    path, target = tmp_path / "j.jsonl", tmp_path / "target"
    target.write_text("theirs")
    match kind:
        case "link":
            path.symlink_to(target)
        case "dangling link":
            path.symlink_to(tmp_path / "none")
        case "hard link":
            path.hardlink_to(target)
        case "pipe":
            os.mkfifo(path)
        case _:
            if os.geteuid() != 0:
                pytest.skip("only root gives files away")
            path.touch()
            os.chown(path, 65534, 65534)
    with pytest.raises(ConfigurationFault, match=r"j\.jsonl: cannot be written: .* \(check --journal\)"):
        Rig(tmp_path, build)
    assert target.read_text() == "theirs" and not (tmp_path / "none").exists()
    assert not (tmp_path / "j.jsonl.1").exists()


class SlowDisk:
    """A journal in its thread, on a disk that answers only while it is let; states are told by the tick's time."""

    def __init__(self, folder: Path, build: Any, bound: int, *, opens: bool = True) -> None:
        self.build, self.path, self.at = build, folder / "j.jsonl", -1.0
        self.answers = threading.Event()
        if opens:
            self.answers.set()
        self.journal = JournalThread(self._make, self._head, bound, patience_seconds=0.05 if not opens else 60.0)

    def _make(self, head: Callable[[], JournalHead]) -> JournalFile:
        self.answers.wait()
        made = JournalFile(self.path, 1 << 20, head)
        write = made._write

        def slowly(line: bytes) -> None:
            self.answers.wait()
            write(line)

        made._write = slowly  # type: ignore[method-assign]
        return made

    def _head(self) -> JournalHead:
        state = TickState()
        return JournalHead(self.build.layout, AgentSettings(tick_seconds=1.1 + self.at / 10), state)

    def take(self, *times: float) -> None:
        for self.at in times:
            self.journal.take(self.build.result(self.at))

    def settle(self) -> None:
        self.answers.set()
        assert self.journal._worker.idle(60)

    def lines(self) -> list[tuple[str, float]]:
        """Heads by the tick that they describe the state after, and ticks."""
        found = read(self.path.read_bytes().splitlines(keepends=True), "j.jsonl")
        return [
            ("head", round((line.settings.tick_seconds - 1.1) * 10))
            if isinstance(line, JournalHead)
            else ("tick", line.observation.monotonic_seconds)
            for line in found
        ]


def test_no_tick_waits_for_the_disk(tmp_path: Path, build: Any) -> None:
    """As many ticks as may wait are kept; of the others it is said once that they are lost, and how many is counted.

    Once the disk answers it goes on from the state of the tick that comes next.
    """
    slow = SlowDisk(tmp_path, build, bound=3)
    slow.journal.begin()
    slow.take(0)
    slow.settle()
    slow.answers.clear()
    with capture_logs() as logs:
        slow.take(1, 2, 3, 4, 5)
    assert [entry["event"] for entry in logs] == ["journal is behind, ticks are left out of it"]
    assert slow.journal.lost == 2
    slow.settle()
    assert slow.lines() == [("head", -1), *(("tick", at) for at in (0, 1, 2, 3))]
    slow.take(6, 7)
    slow.settle()
    assert slow.lines()[5:] == [("head", 6), ("tick", 7)] and slow.journal.lost == 2
    slow.journal.close()


def test_a_disk_that_hangs_as_the_agent_starts(tmp_path: Path, build: Any) -> None:
    """It starts without its journal, which begins once the disk answers."""
    with capture_logs() as logs:
        slow = SlowDisk(tmp_path, build, bound=3, opens=False)
    assert [entry["event"] for entry in logs] == ["journal not opened yet"]
    slow.journal.begin()
    slow.take(0)
    slow.settle()
    assert slow.lines() == [("head", -1), ("tick", 0)]
    slow.journal.close()


def test_a_journal_that_cannot_be_opened_in_its_thread(tmp_path: Path, build: Any) -> None:
    """Is the same one line."""
    head = Rig(tmp_path, build)._head
    with pytest.raises(ConfigurationFault, match=r"no/j\.jsonl: cannot be written: No such file .*--journal"):
        JournalThread(lambda told: JournalFile(tmp_path / "no/j.jsonl", 1, told), head)
