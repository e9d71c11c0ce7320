"""Whoever asks for an end waits a moment, however long it takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agent.kill_thread import KillThread

POD = "/kubepods/besteffort/poda"


class SlowEnding:
    """It ends nobody before it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.asked: list[str] = []

    def __call__(self, cgroup: str) -> int:
        self.asked.append(cgroup)
        assert self.may.wait(60)
        return 7

    def processes(self, cgroup: str) -> frozenset[int]:
        assert self.may.wait(60)
        return frozenset({3})


@pytest.fixture
def slow() -> Iterator[SlowEnding]:
    made = SlowEnding()
    yield made
    made.may.set()


def eventually_told(kill: KillThread) -> frozenset[int]:
    for _ in range(10_000):
        if (found := kill.processes(POD)) is not None:
            return found
        threading.Event().wait(0.01)
    raise AssertionError("never told")


def test_nobody_waits_for_its_end(slow: SlowEnding) -> None:
    """While it is at it somebody was reached, and nobody is told to live or not; afterwards they are."""
    kill = KillThread(slow)
    kill.prepare()
    assert kill(POD) == 1 and kill.processes(POD) is None
    slow.may.set()
    assert eventually_told(kill) == {3}
    assert slow.asked == [POD]
    kill.close()


def test_an_answer_in_time_is_the_answer(slow: SlowEnding) -> None:
    """An error as well."""
    slow.may.set()
    kill = KillThread(slow)
    kill.prepare()
    kill.moment_seconds = 60.0
    assert (kill(POD), kill.processes(POD)) == (7, {3})

    class Refusing(SlowEnding):
        def __call__(self, cgroup: str) -> int:
            raise OSError("refused")

    refusing = KillThread(Refusing())
    refusing.prepare()
    refusing.moment_seconds = 60.0
    with pytest.raises(OSError, match="refused"):
        refusing(POD)
    for each in (kill, refusing):
        each.close()


def test_without_a_thread_the_asker_does_it(slow: SlowEnding, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of processes are used up; once there is one again it is had."""

    def refused(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    slow.may.set()
    kill = KillThread(slow)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        kill.prepare()
        assert (kill(POD), kill.processes(POD)) == (7, {3})
    kill.prepare()
    slow.may.clear()
    assert kill(POD) == 1
    slow.may.set()
    kill.close()
