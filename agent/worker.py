"""A thread for what may take long, so that nobody who asks for it waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

import structlog

log = structlog.get_logger()

_BOUND = 1024
_LONGEST_CLOSE_SECONDS = 2.0

Job = Callable[[], None]


class WorkerThread:
    """Does jobs one after the other; of those that wait under one key only the newest is done.

    The thread lives while there are jobs. A job tells of its failures itself; one that raises is an error of ours.
    """

    def __init__(self, name: str, bound: int = _BOUND) -> None:
        self._name = name
        self._bound = bound
        self._jobs: dict[Hashable, Job] = {}
        self._changed = threading.Condition()
        self._busy = False

    def submit(self, key: Hashable, job: Job) -> bool:
        """Never waits. False where too many other jobs wait, or no thread can be had: it will not be done."""
        with self._changed:
            if key not in self._jobs and len(self._jobs) >= self._bound:
                return False
            self._jobs[key] = job
            return self._busy or self._start()

    def idle(self, seconds: float = 0.0) -> bool:
        """Everything is done, within so long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, seconds)

    def close(self) -> None:
        """What waits is forgotten; what is under way is waited for, not for ever. It may be used again."""
        with self._changed:
            self._jobs.clear()
        self.idle(_LONGEST_CLOSE_SECONDS)

    def _start(self) -> bool:
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:
            # The limit of threads is reached.
            self._jobs.clear()
            return False
        self._busy = True
        return True

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                job()
            except Exception:
                log.exception("a job failed", worker=self._name)

    def _next(self) -> Job | None:
        with self._changed:
            if self._jobs:
                return self._jobs.pop(next(iter(self._jobs)))
            self._busy = False
            self._changed.notify_all()
            return None
