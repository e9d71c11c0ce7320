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
