"""Pressure stall triggers: the kernel says when tasks waited for 10 % of a window.

Windows below 2 s need CAP_SYS_RESOURCE. To close one takes the kernel 10 to 30 ms, in which the brake's thread would
see nothing, and which pods are watched may change each tick: another thread does. Source: kernel
Documentation/accounting/psi.rst; kernel/sched/psi.c, psi_trigger_destroy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
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
_NODE = ""
_FULL_PCT = 10


class _Trigger(msgspec.Struct, frozen=True):
    descriptor: int
    window: str


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
        there = [self._add(cgroup, epoll) for cgroup in wanted if cgroup not in self._triggers]
        self._placed = wanted if all(there) else None

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
        return ()

    def mechanisms(self) -> tuple[Mechanism, ...]:
        node = self._triggers.get(_NODE)
        windows = [trigger.window for cgroup, trigger in self._triggers.items() if cgroup]
        counted = [Mechanism(f"PSI triggers {name}", windows.count(name)) for _, name in _WINDOWS if name in windows]
        return (*counted, *((Mechanism(f"PSI trigger {node.window} on the node's memory"),) if node else ()))

    def close(self) -> None:
        for cgroup in tuple(self._triggers):
            self._drop(cgroup)
        self._closing.idle(_LONGEST_CLOSE_SECONDS)

    def _add(self, cgroup: str, epoll: select.epoll) -> bool:
        """False where that is worth another try with the next watch: no pressure file so far, or no room to wait."""
        path = f"{self._folder}{cgroup}/{self._file}" if cgroup else self._node_file
        kind, pct = ("some", max(self._stall_pct, 1)) if cgroup else ("full", _FULL_PCT)
        try:
            for window_us, name in _WINDOWS:
                descriptor = _registered(path, f"{kind} {window_us * pct // 100} {window_us}", epoll)
                if descriptor is not None:
                    self._triggers[cgroup] = _Trigger(descriptor, name)
                    self._owners[descriptor] = cgroup
                    break
        except OSError as error:
            self.unreadable += error.errno not in _ABSENT
            return error.errno not in (*_ABSENT, *_SHORT)
        return True

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
