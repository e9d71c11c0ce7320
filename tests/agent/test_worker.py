"""One thread, the newest job of each key, a bound; it ends with its work and can be used again."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from agent.worker import WorkerThread

PATIENCE_SECONDS = 20


class Work:
    """Jobs that say what was done; the first of them waits for `go`."""

    def __init__(self) -> None:
        self.worker = WorkerThread("test", bound=2)
        self.done: list[str] = []
        self.began, self.go = threading.Event(), threading.Event()

    def begin(self) -> None:
        assert self.worker.submit("first", self._wait)
        assert self.began.wait(PATIENCE_SECONDS)

    def _wait(self) -> None:
        self.began.set()
        self.go.wait(PATIENCE_SECONDS)
        self.done.append("first")

    def submit(self, key: str, text: str) -> bool:
        return self.worker.submit(key, lambda: self.done.append(text))

    def finish(self) -> list[str]:
        self.go.set()
        assert self.worker.idle(PATIENCE_SECONDS)
        return self.done


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.finish()


def test_the_newest_of_a_key_is_done(work: Work) -> None:
    """In the turn of the older one, so that nobody who asks again and again waits for ever."""
    work.begin()
    for key, text in (("a", "a1"), ("b", "b1"), ("a", "a2"), ("first", "again")):
        work.submit(key, text)
    assert not work.worker.idle() and work.finish() == ["first", "a2", "b1"]


def test_a_bound(work: Work) -> None:
    """A third key has no place; one that waits already has."""
    work.begin()
    assert [work.submit(key, key) for key in ("a", "b", "c", "a")] == [True, True, False, True]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_job_that_does_not_end() -> None:
    """After our patience others get a thread of their own, but never a second job of its key; no more than two here."""
    clock = Clock()
    worker = WorkerThread("test", patience_seconds=5, most=2, monotonic=clock)
    go, others = threading.Event(), [threading.Event() for _ in range(4)]
    done: list[str] = []

    def stuck(text: str) -> None:
        go.wait(PATIENCE_SECONDS)
        done.append(text)

    def free(number: int) -> None:
        done.append(f"free {number}")
        others[number].set()

    assert worker.submit("a", lambda: stuck("a"))
    assert worker.submit("b", lambda: free(0)) and not others[0].wait(0.05) and not worker.held_up("a")
    clock.now = 5.0
    assert worker.held_up("a") and not worker.held_up("b")
    assert worker.submit("a", lambda: stuck("a again")) and worker.submit("c", lambda: free(1))
    assert others[0].wait(PATIENCE_SECONDS) and others[1].wait(PATIENCE_SECONDS)
    assert done == ["free 0", "free 1"]
    assert worker.submit("d", lambda: stuck("d"))
    clock.now = 10.0
    assert worker.submit("e", lambda: free(2)) and not others[2].wait(0.05)
    go.set()
    assert worker.idle(PATIENCE_SECONDS) and sorted(done) == ["a", "a again", "d", "free 0", "free 1", "free 2"]


def test_closing_forgets_what_waits(work: Work) -> None:
    """Only what is under way ends; afterwards it works as before."""
    work.begin()
    work.submit("a", "a")
    threading.Timer(0.05, work.go.set).start()
    work.worker.close()
    assert work.done == ["first"]
    work.submit("b", "b")
    assert work.finish() == ["first", "b"]


def test_an_error_of_ours_ends_no_worker(work: Work) -> None:
    """It is told with its trace; the next job is done."""

    def broken() -> None:
        raise ZeroDivisionError

    with capture_logs() as logs:
        work.worker.submit("broken", broken)
        work.submit("a", "a")
        assert work.finish() == ["a"]
    assert [entry["event"] for entry in logs] == ["a job failed"]
