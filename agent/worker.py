"""A thread for what may take long, so that nobody who asks for it waits."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable

import structlog

log = structlog.get_logger()

_BOUND = 1024
_LONGEST_CLOSE_SECONDS = 2.0

Job = Callable[[], None]


class WorkerThread:
    """Does jobs one after the other; of those that wait under one key only the newest is done.

    Where a job has held all threads up for `patience_seconds`, whoever submits the next gets one more, up to `most`: a
    kernel or a disk may never answer, and nobody else shall wait for that. No key has two jobs at a time.
    Threads live while there are jobs. A job tells of its failures itself; one that raises is an error of ours.
    """

    def __init__(
        self,
        name: str,
        bound: int = _BOUND,
        *,
        patience_seconds: float = math.inf,
        most: int = 1,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._bound = bound
        self._patience = patience_seconds
        self._most = most
        self._monotonic = monotonic
        self._jobs: dict[Hashable, Job] = {}
        self._begun: dict[Hashable, float] = {}
        self._changed = threading.Condition()
        self._threads = 0

    def submit(self, key: Hashable, job: Job) -> bool:
        """Never waits. False where too many other jobs wait, or no thread can be had: it will not be done."""
        with self._changed:
            if key not in self._jobs and len(self._jobs) >= self._bound:
                return False
            self._jobs[key] = job
            return self._has_hands() or self._start() or self._threads > 0

    def held_up(self, key: Hashable) -> bool:
        """The job of this key does not end: it has taken for longer than our patience."""
        with self._changed:
            return key in self._begun and self._is_stuck(self._begun[key])

    def idle(self, seconds: float = 0.0) -> bool:
        """Everything is done, within so long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._threads, seconds)

    def close(self) -> None:
        """What waits is forgotten; what is under way is waited for, not for ever. It may be used again."""
        with self._changed:
            self._jobs.clear()
        self.idle(_LONGEST_CLOSE_SECONDS)

    def _is_stuck(self, begun: float) -> bool:
        return self._monotonic() - begun >= self._patience

    def _has_hands(self) -> bool:
        """A thread that is not stuck, or as many as there may be."""
        stuck = sum(map(self._is_stuck, self._begun.values()))
        return self._threads > stuck or self._threads >= self._most

    def _start(self) -> bool:
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:
            # The limit of threads is reached.
            if not self._threads:
                self._jobs.clear()
            return False
        self._threads += 1
        return True

    def _run(self) -> None:
        while (found := self._next()) is not None:
            key, job = found
            try:
                job()
            except Exception:
                log.exception("a job failed", worker=self._name)
            with self._changed:
                del self._begun[key]

    def _next(self) -> tuple[Hashable, Job] | None:
        with self._changed:
            key = next((key for key in self._jobs if key not in self._begun), None)
            if key is not None:
                self._begun[key] = self._monotonic()
                return key, self._jobs.pop(key)
            self._threads -= 1
            self._changed.notify_all()
            return None
