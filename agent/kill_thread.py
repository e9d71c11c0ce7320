"""The last resort's own thread: the brake asks it and waits for a moment, since a pod may have thousands of processes
and hundreds of cgroups to be looked into, and holds locks of the kernel that ending it needs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")

_MOMENT_SECONDS = 0.05
_LONGEST_CLOSE_SECONDS = 2.0


class Ending(Protocol):
    """Takes its time: ends all processes of a cgroup and says how many it reached; and those that are in it."""

    def __call__(self, cgroup: str) -> int: ...

    def processes(self, cgroup: str) -> frozenset[int]: ...


class KillThread:
    """One thing after the other. Its thread is there before memory is short; without one the asker does the work."""

    def __init__(self, ending: Ending) -> None:
        self._ending = ending
        self._jobs = queue.SimpleQueue[Callable[[], None] | None]()
        self._thread: threading.Thread | None = None
        self._busy = False
        self.moment_seconds = _MOMENT_SECONDS

    def prepare(self) -> None:
        """Have the thread; tried again each time where none can be had."""
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._run, name="last resort", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return
        self._thread = thread

    def __call__(self, cgroup: str) -> int:
        """How many were reached; 1 while it is still at it. Raises what `ending` does."""
        reached = self._asked(lambda: self._ending(cgroup))
        return 1 if reached is None else reached

    def processes(self, cgroup: str) -> frozenset[int] | None:
        """None where that takes longer: nobody asks twice, and who is asked for is taken to live."""
        return None if self._busy else self._asked(lambda: self._ending.processes(cgroup))

    def close(self) -> None:
        """What waits is still done; nobody waits for ever."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(_LONGEST_CLOSE_SECONDS)
            self._thread = None

    def _asked(self, work: Callable[[], T]) -> T | None:
        if self._thread is None:
            return work()
        done, answers, errors = threading.Event(), list[T](), list[Exception]()

        def job() -> None:
            try:
                answers.append(work())
            except Exception as error:
                errors.append(error)
            self._busy = False
            done.set()

        self._busy = True
        self._jobs.put(job)
        if not done.wait(self.moment_seconds):
            return None
        if errors:
            raise errors[0]
        return answers[0]

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
