"""Level and refaults of a made /proc, and of this machine."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.limit.watch import Mechanism, MemorySigns, WakeCause, Watch
from agent.edge.memorypoll import MemoryPoll


class Rig:
    def __init__(self, proc: Path, signs: MemorySigns) -> None:
        self.proc = proc
        self.poll = MemoryPoll(proc, page_bytes=4096)
        self.say(1000, 0)
        with select.epoll() as epoll:
            self.poll.place(Watch(signs=signs), epoll)

    def say(self, available_kib: int, pages: int) -> None:
        (self.proc / "meminfo").write_text(
            f"MemTotal:       4000 kB\nMemFree:        10 kB\nMemAvailable:   {available_kib} kB\n"
        )
        (self.proc / "vmstat").write_text(
            f"nr_free_pages 1\nworkingset_refault_anon 0\nworkingset_refault_file {pages}\n"
            f"pgsteal_kswapd {pages}\npgsteal_direct 0\n"
        )


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path, MemorySigns(500 << 10, 50))
    yield made
    made.poll.close()


def test_the_level_falls_below_its_mark(rig: Rig) -> None:
    assert rig.poll.look(1.0) == ()
    rig.say(499, 0)
    assert rig.poll.look(1.1) == (WakeCause.MEMORY_LEVEL,) and rig.poll.look(1.2) == ()


def test_pages_come_back(rig: Rig) -> None:
    """13 pages of 4 KiB are more than a twentieth of 1000 KiB."""
    assert rig.poll.look(1.0) == ()
    rig.say(1000, 13)
    assert rig.poll.look(1.1) == (WakeCause.MEMORY_REFAULTS,) and rig.poll.take({}) == ()
    assert rig.poll.mechanisms() == (Mechanism("refaults each interval"),)


def test_a_kernel_that_does_not_count_them(rig: Rig) -> None:
    """The level goes on; that is no fault, and no mechanism."""
    (rig.proc / "vmstat").write_text("nr_free_pages 1\n")
    assert rig.poll.look(1.0) == () and rig.poll.mechanisms() == () and rig.poll.unreadable == 0
    rig.proc.joinpath("meminfo").write_text("garbage")
    assert rig.poll.look(1.1) == () and rig.poll.unreadable == 1


def test_nothing_is_read_that_nobody_asked_for(tmp_path: Path) -> None:
    rig = Rig(tmp_path, MemorySigns())
    (tmp_path / "meminfo").unlink()
    assert rig.poll.look(1.0) == () and rig.poll.unreadable == 0
    rig.poll.close()


def test_this_machine() -> None:
    """Its /proc is understood."""
    poll = MemoryPoll(Path("/proc"))
    with select.epoll() as epoll:
        poll.place(Watch(signs=MemorySigns(1, 1000)), epoll)
    assert poll.look(1.0) == () and poll.unreadable == 0
    assert poll.mechanisms() == (Mechanism("refaults each interval"),)
    poll.close()
