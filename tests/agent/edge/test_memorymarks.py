"""Where the kernel tells nothing of memory, nothing is broken; tests/agent/kernel and tests/guest show where it does."""

from __future__ import annotations

import select
from pathlib import Path

import pytest

from agent.core.layout import Layout
from agent.core.watch import MemoryMark, Watch
from agent.edge.memorymarks import memory_alarms

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
