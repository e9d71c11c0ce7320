"""What the simulated kernel does to processes: signals, CPUs, priority. Whoever is gone already needs nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Protocol

from embedded.simkernel.limits import Priority


class Actions(Protocol):
    """On processes by id, with all their threads."""

    def signal(self, pid: int, number: signal.Signals) -> None: ...
    def pin(self, pid: int, cpus: Collection[int]) -> None: ...
    def lower(self, pid: int, priority: Priority) -> None: ...


class RealActions:
    """By system calls that need no privilege for processes of one's own."""

    def signal(self, pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

    def pin(self, pid: int, cpus: Collection[int]) -> None:
        for thread in _threads(pid):
            with suppress(OSError):
                os.sched_setaffinity(thread, cpus)

    def lower(self, pid: int, priority: Priority) -> None:
        for thread in _threads(pid):
            with suppress(OSError):
                if priority.idle:
                    os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
                if os.getpriority(os.PRIO_PROCESS, thread) < priority.nice:
                    os.setpriority(os.PRIO_PROCESS, thread, priority.nice)


def _threads(pid: int) -> Iterator[int]:
    with suppress(OSError):
        yield from [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 — names are all there is
