"""Where the kernel tells nothing of memory, nothing is broken; tests/agent/kernel and tests/guest show where it does."""

from __future__ import annotations

import errno
import select
from pathlib import Path
from typing import Any

import pytest

from agent.core.limit.watch import MemoryMark, Watch
from agent.core.observe.layout import Layout
from agent.edge.memorymarks import Thresholds, memory_alarms

MIB = 1 << 20
WATCH = Watch(memory=(MemoryMark("/kubepods", 1 << 20), MemoryMark("/gone", 1)))


@pytest.mark.parametrize("version", [1, 2])
def test_copies_of_the_files_tell_nothing(tmp_path: Path, version: int) -> None:
    """Recorded trees hold ordinary files, and no cgroup.event_control."""
    below = tmp_path / "memory/kubepods" if version == 1 else tmp_path / "kubepods/besteffort"
    below.mkdir(parents=True)
    (below / "memory.usage_in_bytes").write_text("4096\n")
    (below / "memory.events.local").write_text("low 0\nhigh 3\nmax 0\noom 0\noom_kill 0\n")
    alarms = memory_alarms(tmp_path, Layout("/kubepods", version))
    for watch in (WATCH, Watch()):
        alarms.place(watch, select.epoll())
        assert alarms.mechanisms() == () and alarms.take({}) == () and alarms.unreadable == 0
    alarms.close()


def test_garbage_is_counted(tmp_path: Path) -> None:
    """Each time it is looked at."""
    (tmp_path / "memory/kubepods").mkdir(parents=True)
    (tmp_path / "memory/kubepods/memory.usage_in_bytes").write_text("garbage")
    alarms = memory_alarms(tmp_path, Layout("/kubepods", 1))
    alarms.place(WATCH, select.epoll())
    assert alarms.unreadable == 1 and alarms.mechanisms() == ()
    alarms.close()


class FullEpoll:
    """One whose user has no watch left (epoll_ctl(2), ENOSPC)."""

    def register(self, descriptor: int, events: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_mark_that_nobody_hears_is_none(tmp_path: Path) -> None:
    """Root in a container uses up what root may wait for; with the next watch it is tried again, and heard."""
    registry = Registry(tmp_path)
    heard, full = registry.epoll, FullEpoll()
    refused: Any = full
    registry.epoll = refused
    assert registry.place(0.0, a=500) == {"a": 500} and registry.thresholds.mechanisms() == ()
    registry.epoll = heard
    assert registry.place(1.0, a=500) == {"a": 500} and len(registry.thresholds.mechanisms()) == 1
    assert registry.thresholds.unreadable == 1
    registry.close()


class Registry:
    """Two cgroups of made files; a mark is what was last written to cgroup.event_control."""

    def __init__(self, root: Path) -> None:
        self.now = 0.0
        self.controls = {}
        for name in ("a", "b"):
            (root / "memory" / name).mkdir(parents=True)
            (root / "memory" / name / "memory.usage_in_bytes").write_text("0\n")
            self.controls[name] = root / "memory" / name / "cgroup.event_control"
            self.controls[name].write_text("")
        self.thresholds = Thresholds(root, lambda: self.now)
        self.epoll = select.epoll()

    def place(self, now: float, **mib: int) -> dict[str, int]:
        """The marks that were registered, in MiB."""
        self.now = now
        for control in self.controls.values():
            control.write_text("")
        marks = tuple(MemoryMark(f"/{name}", amount * MIB) for name, amount in mib.items())
        self.thresholds.place(Watch(memory=marks), self.epoll)
        texts = {name: control.read_text().split() for name, control in self.controls.items()}
        return {name: int(text[2]) // MIB for name, text in texts.items() if text}

    def close(self) -> None:
        self.thresholds.close()
        self.epoll.close()


def test_marks_that_move_are_registered_now_and_then(tmp_path: Path) -> None:
    """At once where there is none or it is much lower; else after five seconds, one at a time, the oldest first."""
    registry = Registry(tmp_path)
    turns = [
        (0.0, {"a": 500, "b": 500}, {"a": 500, "b": 500}),
        (1.0, {"a": 600, "b": 600}, {}),
        (2.0, {"a": 400, "b": 450}, {"a": 400}),
        (4.9, {"a": 500, "b": 600}, {}),
        (5.0, {"a": 500, "b": 600}, {"b": 600}),
        (7.0, {"a": 500, "b": 700}, {"a": 500}),
        (11.9, {"a": 600, "b": 700}, {"b": 700}),
        (20.0, {"a": 600, "b": 800}, {"a": 600}),
        (21.0, {"a": 600, "b": 800}, {"b": 800}),
        (30.0, {"a": 610, "b": 100}, {"b": 100}),
        (40.0, {"a": 611, "b": 110}, {}),
    ]
    assert [registry.place(now, **marks) for now, marks, _ in turns] == [expected for _, _, expected in turns]
    registry.close()


def test_a_mark_that_is_lost_is_registered_at_once(tmp_path: Path) -> None:
    """And one that nobody wants any more is not kept."""
    registry = Registry(tmp_path)
    assert registry.place(0.0, a=500) == {"a": 500}
    assert registry.place(1.0) == {} and registry.thresholds.mechanisms() == ()
    assert registry.place(2.0, a=500) == {"a": 500}
    registry.close()
