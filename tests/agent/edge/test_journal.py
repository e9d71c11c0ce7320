"""The journal: one line a tick, bounded, and never in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.core.limits import Limits
from agent.edge import journal
from agent.edge.journal import Entry, Journal
from agent.ports import TickResult
from model.decision import Decision, Term, Unit
from model.fault import ConfigurationFault
from model.reason import Reason


def result(build: Any, at: float, value: int = 5) -> TickResult:
    decision = Decision("node/n", "r", value, Unit.MILLI_CPU, Reason.COMPUTED, (Term("x", value),))
    seen = build.seen(at)
    return TickResult(seen, None, build.usage(), (decision,), Limits({}, None), (), (), None, "")  # type: ignore[arg-type]


def entries(path: Path) -> list[Entry]:
    return [msgspec.json.decode(line, type=Entry) for line in path.read_bytes().splitlines()]


def test_each_tick_is_a_line_and_decisions_only_when_they_change(build: Any, tmp_path: Path) -> None:
    """What is written can be read back as what it was."""
    path = tmp_path / "journal"
    one = Journal(path)
    for at, value in ((0, 5), (1, 5), (2, 9)):
        one.take(result(build, at, value))
    one.close()
    found = entries(path)
    assert [entry.at_seconds for entry in found] == [1000.0, 1001.0, 1002.0]
    assert [[d.value for d in entry.decisions] for entry in found] == [[5], [], [9]]
    assert found[0].usage == build.usage()


def test_a_full_file_is_rotated_once(build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files at most, whatever the run time."""
    monkeypatch.setattr(journal, "_LARGEST_BYTES", 3000)
    path = tmp_path / "journal.jsonl"
    one = Journal(path)
    for at in range(50):
        one.take(result(build, at))
    one.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["journal.jsonl", "journal.jsonl.1"]
    assert all(p.stat().st_size <= 3000 for p in tmp_path.iterdir())
    assert entries(path)[-1].at_seconds == 1049.0


def test_an_unwritable_path_is_one_line(tmp_path: Path) -> None:
    """The path, the cause and the flag."""
    with pytest.raises(ConfigurationFault, match=r"no/journal: cannot be written: No such file .*--journal"):
        Journal(tmp_path / "no" / "journal")


def test_a_failed_rotation_is_tried_again(build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tick fails for it, and once the folder can be written again the journal goes on."""
    monkeypatch.setattr(journal, "_LARGEST_BYTES", 1000)
    folder = tmp_path / "j"
    folder.mkdir()
    (folder / "journal.1").mkdir()
    (folder / "journal.1" / "in the way").touch()
    one = Journal(folder / "journal")
    for at in range(3):
        one.take(result(build, at))
    (folder / "journal.1" / "in the way").unlink()
    (folder / "journal.1").rmdir()
    one.take(result(build, 9))
    one.close()
    assert entries(folder / "journal")[-1].at_seconds == 1009.0
