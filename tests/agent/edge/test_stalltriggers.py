"""Where the kernel has no triggers, nothing is broken; where it has, tests/agent/kernel and tests/guest show it."""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agent.core.limit.watch import Watch
from agent.core.observe.layout import Layout
from agent.edge import stalltriggers
from agent.edge.stalltriggers import StallTriggers


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until all triggers are had, or refused."""
    monkeypatch.setattr(stalltriggers, "_MOMENT_SECONDS", 20.0)


SAID = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


@pytest.mark.parametrize("version", [1, 2])
def test_a_copy_of_a_pressure_file_is_left_as_it_is(tmp_path: Path, version: int) -> None:
    """Recorded trees hold ordinary files: they cannot be waited for, and are not written to."""
    folder = tmp_path / ("unified" if version == 1 else "") / "kubepods/burstable"
    folder.mkdir(parents=True)
    (folder / "cpu.pressure").write_text(SAID)
    triggers = StallTriggers(tmp_path, Layout("/kubepods", version), tmp_path)
    for online in (("/kubepods/burstable", "/kubepods/gone"), ()):
        triggers.place(Watch(online=online), select.epoll())
        assert triggers.mechanisms() == () and triggers.take({}) == ()
    assert (folder / "cpu.pressure").read_text() == SAID and triggers.unreadable == 0
    triggers.close()


def test_what_cannot_be_opened_is_counted(tmp_path: Path) -> None:
    """Once, for it is not tried again while the same cgroups are online and there."""
    (tmp_path / "kubepods/cpu.pressure").mkdir(parents=True)
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure/memory").write_text(SAID)
    triggers = StallTriggers(tmp_path, Layout("/kubepods", 2), tmp_path)
    for _ in range(3):
        triggers.place(Watch(online=("/kubepods",)), select.epoll())
    assert triggers.unreadable == 1 and triggers.mechanisms() == ()
    triggers.close()


class FullEpoll:
    """One whose user has no watch left (epoll_ctl(2), ENOSPC)."""

    def register(self, descriptor: int, events: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_without_room_to_wait_it_is_tried_again(tmp_path: Path) -> None:
    """Root in a container uses up what root may wait for, and gives it back: triggers must come back, too."""
    (tmp_path / "kubepods").mkdir()
    (tmp_path / "pressure").mkdir()
    for file in ("kubepods/cpu.pressure", "pressure/memory"):
        (tmp_path / file).write_text(SAID)
    triggers, full = StallTriggers(tmp_path, Layout("/kubepods", 2), tmp_path), FullEpoll()
    tries = []
    for _ in range(3):
        refused: Any = full
        triggers.place(Watch(online=("/kubepods",)), refused)
        tries.append(triggers.unreadable)
    assert tries == [2, 4, 6] and triggers.mechanisms() == ()
    triggers.close()


def test_the_brake_waits_for_no_trigger_to_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes long for each, and online pods may change who is watched: they are heard no more at once, and
    closed in time. A pipe stands for a pressure file, since it can be waited for."""
    pods = tuple(f"/kubepods/pod{number}" for number in range(3))
    for pod in pods:
        (tmp_path / pod.lstrip("/")).mkdir(parents=True)
        os.mkfifo(tmp_path / pod.lstrip("/") / "cpu.pressure")
    triggers, epoll, close = StallTriggers(tmp_path, Layout("/kubepods", 2), tmp_path), select.epoll(), os.close
    triggers.place(Watch(online=pods), epoll)
    may_end, closed = threading.Event(), list[int]()

    def slow(descriptor: int) -> None:
        assert threading.current_thread() is not threading.main_thread() and may_end.wait(20)
        close(descriptor)
        closed.append(descriptor)

    monkeypatch.setattr("agent.edge.stalltriggers.os.close", slow)
    triggers.place(Watch(online=pods[:1]), epoll)
    assert not closed and [each.cgroups for each in triggers.mechanisms()] == [1]
    may_end.set()
    triggers.close()
    assert len(closed) == 3
    monkeypatch.undo()
    epoll.close()


def test_the_brake_waits_for_no_trigger_to_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Best effort may hold the lock of all cgroups that the kernel takes for one: it is heard once it is had, and closed
    where nobody wants it by then."""
    pods = tuple(f"/kubepods/pod{number}" for number in range(2))
    for pod in pods:
        (tmp_path / pod.lstrip("/")).mkdir(parents=True)
        os.mkfifo(tmp_path / pod.lstrip("/") / "cpu.pressure")
    triggers, epoll, registered = (
        StallTriggers(tmp_path, Layout("/kubepods", 2), tmp_path),
        select.epoll(),
        threading.Event(),
    )

    def slow(path: str, wanted: str, epoll: select.epoll) -> int | None:
        assert registered.wait(20)
        return real(path, wanted, epoll)

    real = stalltriggers._registered
    monkeypatch.setattr(stalltriggers, "_registered", slow)
    monkeypatch.setattr(stalltriggers, "_MOMENT_SECONDS", 0.001)
    asking = threading.Thread(target=triggers.place, args=[Watch(online=pods), epoll], daemon=True)
    asking.start()
    asking.join(10)
    assert not asking.is_alive() and triggers.mechanisms() == ()
    triggers.place(Watch(online=pods[:1]), epoll)
    registered.set()
    deadline = time.monotonic() + 20
    while not triggers.mechanisms() and time.monotonic() < deadline:
        time.sleep(0.01)
        assert triggers.look(0.0) == ()
    assert [each.cgroups for each in triggers.mechanisms()] == [1]
    triggers.close()
    epoll.close()
