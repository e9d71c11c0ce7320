"""Scores of a cgroup's processes as one file: of what a made /proc shows, and of real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.files.oomscores import ProcessScores


class Tree:
    """A cgroup's folder, and processes in it and below it."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.cgroup = folder / "proc", folder / "cgroup"
        self.cgroup.mkdir(parents=True)
        (self.cgroup / "cgroup.procs").write_text("")
        self.scores = ProcessScores(self.proc)

    def run(self, process: int, score: str, below: str = "") -> None:
        procs = self.cgroup / below / "cgroup.procs"
        procs.parent.mkdir(exist_ok=True)
        procs.write_text((procs.read_text() if procs.exists() else "") + f"{process}\n")
        if score:
            (self.proc / str(process)).mkdir(parents=True)
            (self.proc / str(process) / "oom_score_adj").write_text(f"{score}\n")

    def said(self) -> dict[str, str]:
        return {file.parent.name: file.read_text().strip() for file in self.proc.glob("*/oom_score_adj")}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_the_highest_is_told_and_all_are_written(tree: Tree) -> None:
    """Also in cgroups that the container made; what has ended, or cannot be seen, is passed over."""
    tree.run(10, "-997")
    tree.run(11, "200")
    tree.run(12, "50", "below")
    tree.run(13, "")
    tree.run(0, "")
    assert tree.scores.read(str(tree.cgroup)) == b"200"
    tree.scores.write(str(tree.cgroup), "-500")
    assert tree.said() == {"10": "-500", "11": "-500", "12": "-500"}
    assert tree.scores.read(str(tree.cgroup)) == b"-500"


def test_a_number_that_is_another_s_by_now(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of the cgroup ends as its score is looked at, and one elsewhere is given its number."""
    tree.run(10, "0")
    tree.run(11, "0")
    look = ProcessScores._score

    def meanwhile(scores: ProcessScores, process: str) -> bytes | None:
        (tree.cgroup / "cgroup.procs").write_text("11\n")
        return look(scores, process)

    monkeypatch.setattr(ProcessScores, "_score", meanwhile)
    tree.scores.write(str(tree.cgroup), "700")
    assert tree.said() == {"10": "0", "11": "700"}


def test_without_processes_there_is_no_file(tree: Tree, tmp_path: Path) -> None:
    for cgroup in (tree.cgroup, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError):
            tree.scores.read(str(cgroup))
        tree.scores.write(str(cgroup), "5")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def test_real_processes(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """Raising a score needs no right; what the kernel refuses is told."""
    (tmp_path / "cgroup.procs").write_text(f"{sleeper.pid}\n")
    before = int(ProcessScores().read(str(tmp_path)))
    ProcessScores().write(str(tmp_path), str(min(before + 3, 1000)))
    assert int(ProcessScores().read(str(tmp_path))) == min(before + 3, 1000)
    with pytest.raises(OSError, match="Invalid argument"):
        ProcessScores().write(str(tmp_path), "2000")
