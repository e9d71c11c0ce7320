"""Pressure stall triggers: the kernel says when tasks waited for 10 % of a window.

Windows below 2 s need CAP_SYS_RESOURCE. To close one takes the kernel 10 to 30 ms, in which the brake's thread would
see nothing, and which pods are watched may change each tick: another thread does. To ask for one takes a lock of all
cgroups, which a batch pod that may write cgroups of its own can hold for seconds: so that is done by a thread, too.
Source: kernel Documentation/accounting/psi.rst; kernel/sched/psi.c, psi_trigger_destroy; kernel/cgroup/cgroup.c,
pressure_write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from agent.core.limit.watch import Mechanism, WakeCause, Watch
from agent.core.observe.files import FILES, FilePart
from agent.core.observe.layout import Layout
from agent.worker import WorkerThread

_MOST_CGROUPS = 64
_WINDOWS = ((500_000, "500 ms"), (2_000_000, "2 s"))
"""In microseconds; the first the kernel grants."""
_NOT_GRANTED = (errno.EINVAL, errno.EPERM)
_ABSENT = (errno.ENOENT, errno.ENODEV)
_SHORT = (errno.ENOSPC, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""What root in a container may use up, and give back at any time: epoll's watches, memory, open files."""
_LONGEST_CLOSE_SECONDS = 5.0
_MOMENT_SECONDS = 0.02
"""The brake waits no longer for triggers that it asked for; it looks for them again each interval."""
_NODE = ""
_FULL_PCT = 10


class _Trigger(msgspec.Struct, frozen=True):
    descriptor: int
    window: str


class _Answer(msgspec.Struct, frozen=True):
    """To a question of `generation` for a cgroup's trigger: None where there is none; `again`: worth another try."""

    cgroup: str
    generation: int
    trigger: _Trigger | None
    again: bool = False
    unreadable: bool = False


class StallTriggers:
    """CPU pressure (some) of online cgroups, and memory pressure (full) of the node.

    Cgroups of a v1 host have pressure files where the `unified` mount knows them.
    """

    def __init__(self, root: Path, layout: Layout, proc: Path) -> None:
        kind = next(kind for kind in FILES[layout.version] if kind.part is FilePart.CPU_PRESSURE)
        self._folder, self._file = str(root / kind.controller), kind.file
        self._node_file = str(proc / "pressure/memory")
        self._triggers: dict[str, _Trigger] = {}
        self._owners: dict[int, str] = {}
        self._placed: tuple[str, ...] | None = None
        self._epoll: select.epoll | None = None
        self._closing = WorkerThread("closed triggers")
        self._opening = WorkerThread("new triggers")
        self._asked: dict[str, int] = {}
        self._answers: deque[_Answer] = deque()
        self._generation = 0
        self._stall_pct = 0
        self.unreadable = 0

    def place(self, watch: Watch, epoll: select.epoll) -> None:
        """At most 64 cgroups; triggers of those that stay are kept, absent cgroups are looked for each time."""
        wanted = (_NODE, *watch.online[:_MOST_CGROUPS])
        if wanted == self._placed and watch.stall_pct == self._stall_pct:
            return
        self._epoll = epoll
        kept = {_NODE} if watch.stall_pct != self._stall_pct else set(wanted)
        self._stall_pct = watch.stall_pct
        for cgroup in self._triggers.keys() - kept:
            self._drop(cgroup)
        # Whoever is not wanted any more, or with another threshold, is closed once it is answered.
        self._asked = {cgroup: asked for cgroup, asked in self._asked.items() if cgroup in kept}
        for cgroup in wanted:
            if cgroup not in self._triggers and cgroup not in self._asked:
                self._ask(cgroup, epoll)
        self._placed = wanted
        self._opening.idle(_MOMENT_SECONDS)
        self._take_answers()

    def take(self, ready: Mapping[int, int]) -> tuple[WakeCause, ...]:
        """A removed cgroup's trigger is closed, and the cgroup counts as absent."""
        found = []
        for descriptor in ready.keys() & self._owners.keys():
            cgroup = self._owners[descriptor]
            if ready[descriptor] & select.EPOLLERR:
                self._drop(cgroup)
                self._placed = None
            else:
                found.append(WakeCause.CPU_PRESSURE if cgroup else WakeCause.MEMORY_PRESSURE)
        return tuple(found)

    def look(self, monotonic_seconds: float) -> tuple[WakeCause, ...]:
        """Nothing: what was asked for and took longer is heard from now on."""
        self._take_answers()
        return ()

    def mechanisms(self) -> tuple[Mechanism, ...]:
        node = self._triggers.get(_NODE)
        windows = [trigger.window for cgroup, trigger in self._triggers.items() if cgroup]
        counted = [Mechanism(f"PSI triggers {name}", windows.count(name)) for _, name in _WINDOWS if name in windows]
        return (*counted, *((Mechanism(f"PSI trigger {node.window} on the node's memory"),) if node else ()))

    def close(self) -> None:
        self._opening.idle(_LONGEST_CLOSE_SECONDS)
        self._asked = {}
        self._take_answers()
        for cgroup in tuple(self._triggers):
            self._drop(cgroup)
        self._closing.idle(_LONGEST_CLOSE_SECONDS)

    def _ask(self, cgroup: str, epoll: select.epoll) -> None:
        self._generation += 1
        self._asked[cgroup] = self._generation
        job = partial(self._answer, cgroup, self._generation, self._stall_pct, epoll)
        if not self._opening.submit((cgroup, self._generation), job):
            job()

    def _answer(self, cgroup: str, generation: int, stall_pct: int, epoll: select.epoll) -> None:
        """In a thread of its own: the kernel may take its time."""
        path = f"{self._folder}{cgroup}/{self._file}" if cgroup else self._node_file
        kind, pct = ("some", max(stall_pct, 1)) if cgroup else ("full", _FULL_PCT)
        found: _Trigger | None = None
        try:
            for window_us, name in _WINDOWS:
                descriptor = _registered(path, f"{kind} {window_us * pct // 100} {window_us}", epoll)
                if descriptor is not None:
                    found = _Trigger(descriptor, name)
                    break
        except (OSError, ValueError) as error:
            # ValueError: nobody waits any more, since the brake has ended.
            code = error.errno if isinstance(error, OSError) else None
            self._answers.append(
                _Answer(cgroup, generation, None, code in (*_ABSENT, *_SHORT), code is not None and code not in _ABSENT)
            )
            return
        self._answers.append(_Answer(cgroup, generation, found))

    def _take_answers(self) -> None:
        for _ in range(len(self._answers)):
            self._take_answer(self._answers.popleft())

    def _take_answer(self, answer: _Answer) -> None:
        """Another try with the next watch where there is no pressure file so far, or no room to wait."""
        wanted = self._asked.get(answer.cgroup) == answer.generation
        if wanted:
            del self._asked[answer.cgroup]
            self.unreadable += answer.unreadable
        if answer.trigger is not None:
            self._triggers[answer.cgroup] = answer.trigger
            self._owners[answer.trigger.descriptor] = answer.cgroup
            if not wanted:
                self._drop(answer.cgroup)
        if wanted and answer.again:
            self._placed = None

    def _drop(self, cgroup: str) -> None:
        """It is heard no more from now on."""
        descriptor = self._triggers.pop(cgroup).descriptor
        del self._owners[descriptor]
        if self._epoll is not None:
            with contextlib.suppress(OSError, ValueError):
                self._epoll.unregister(descriptor)
        if not self._closing.submit(descriptor, partial(os.close, descriptor)):
            os.close(descriptor)


def _registered(path: str, wanted: str, epoll: select.epoll) -> int | None:
    """A descriptor that waits for its trigger; None where the kernel does not grant it. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # A copy of such a file can be written to, but never waited for; that is seen before it is overwritten.
        epoll.register(descriptor, 0)
        epoll.unregister(descriptor)
        # The kernel takes the last byte for the end of the text.
        os.write(descriptor, wanted.encode() + b"\0")
        epoll.register(descriptor, select.EPOLLPRI)
    except OSError as error:
        os.close(descriptor)
        if error.errno not in _NOT_GRANTED:
            raise
        return None
    return descriptor
