"""Killer: SIGKILL to everything in one best-effort cgroup.

It neither waits for the processes to be gone nor ever raises. A container may make
cgroups below its own: of hundreds of thousands few are looked into, and the processes of all others are asked where
they are; and with cgroup v1 it may freeze its processes there, which then do not end before they are thawed.
Processes that trace each other stand still on their way out, each until the other lets it go on: the kernel takes back
what such hold, shared memory excepted.
Source: ptrace(2), BUGS; Linux kernel/exit.c, do_exit; mm/oom_kill.c, process_mrelease.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Set
from functools import partial
from itertools import islice
from pathlib import Path

import structlog

from agent.core.observe.layout import Layout
from agent.files.folders import reachable_folders
from agent.files.thawing import FREEZER, thaw, thawed
from agent.worker import WorkerThread

log = structlog.get_logger()

_BOUND_SECONDS = 0.005
_WHOLE_SECONDS = 0.02
_V1_HIERARCHY = "memory"
_MOST_FOLDERS = 256
_HELD_AT_ONCE = 256
"""Half of the descriptors that what is read all the time leaves free."""
_MOST_THREADS = 8
"""Of a process that is told to be at the top: all but its first that are listed live."""
_PF_KTHREAD = 0x0020_0000
"""include/linux/sched.h; flags are the ninth field of /proc/PID/stat (proc(5))."""
_PROCESS_MRELEASE = 448
"""include/uapi/asm-generic/unistd.h and x86_64's table, from Linux 5.15 on."""
_ENDED_BY_SECONDS = 0.25
"""A gigabyte is given back in half of it: who is there then may need help."""
_PATIENCE_SECONDS = 1.0
_MOST_STUCK = 4
_libc = ctypes.CDLL(None)


class Killer:
    """`root` is where cgroups are mounted, `proc` the /proc whose numbers `kill` understands.

    Only what lies below `layout`'s best-effort root is ever touched; on v1 the memory controller's hierarchy says
    what belongs to a cgroup, since its memory is what is wanted.
    """

    def __init__(
        self, root: Path, layout: Layout, proc: Path = Path("/proc"), monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._tree = root / _V1_HIERARCHY if layout.version == 1 else root
        self._hierarchy = _V1_HIERARCHY if layout.version == 1 else ""
        self._freezer = root / FREEZER if layout.version == 1 else None
        self._below = layout.best_effort
        self._proc = proc
        self._monotonic = monotonic
        self._whole = WorkerThread("whole cgroups to end")
        # The kernel may wait for a lock that a process of the pod holds.
        self._releasing = WorkerThread("memory of the killed", patience_seconds=_PATIENCE_SECONDS, most=_MOST_STUCK)
        self.refused = 0
        self.failed_signals = 0

    def __call__(self, cgroup: str) -> int:
        """How many processes were reached; 0 where the cgroup is gone, empty or not ours to touch."""
        if not self._may_touch(cgroup):
            self.refused += 1
            log.error("not killed: no cgroup below best effort", cgroup=cgroup, best_effort=self._below)
            return 0
        whole, there = self._kill_whole(cgroup)
        # A process whose first thread has ended is not reached by that: kill(2) finds another of its threads.
        each = self._kill_one_by_one(cgroup)
        if whole is None and there:
            # Without an answer so far it may have ended some of them before they could be sent a signal.
            each |= there - self._members(cgroup)
        reached = max(whole or 0, len(each))
        if reached:
            self._releasing.submit(cgroup, partial(self._release, cgroup))
        return reached

    def processes(self, cgroup: str) -> frozenset[int]:
        """Processes in it, at all depths; a dying one stays there until its memory is given back."""
        return frozenset(self._members(cgroup))

    def _may_touch(self, cgroup: str) -> bool:
        steps = cgroup.removeprefix(f"{self._below}/").split("/")
        return cgroup.startswith(f"{self._below}/") and not {"", ".", ".."}.intersection(steps)

    def _kill_whole(self, cgroup: str) -> tuple[int | None, set[int]]:
        """By cgroup.kill (v2, Linux 5.14), which leaves no fork behind and no kernel thread out of place: how many that
        were, and who was there then. None and nobody where that is not there, or would be too much; None where it has
        no answer: it takes a lock that whoever switches controllers of cgroups of its own, or makes some, may hold for
        seconds."""
        kill = self._tree / cgroup.lstrip("/") / "cgroup.kill"
        if not kill.exists():
            return None, set()
        members, is_all = self._looked_up(cgroup)
        away = () if is_all else (1, os.getpid())
        if members & {0, 1, os.getpid()} or any(_is_in(self._cgroup_of(p, self._hierarchy), cgroup) for p in away):
            return None, set()
        # Where its processes hide it reaches them all the same.
        populated = self._is_populated(cgroup)
        done = threading.Event()
        self._whole.submit(cgroup, partial(_kill_all_in, kill, done))
        return max(len(members), int(populated)) if done.wait(_WHOLE_SECONDS) else None, members

    def _is_populated(self, cgroup: str) -> bool:
        try:
            return b"populated 1" in (self._tree / cgroup.lstrip("/") / "cgroup.events").read_bytes()
        except OSError:
            return False

    def _release(self, cgroup: str) -> None:
        """What those hold that have not ended by now; of one that is not dying the kernel takes nothing."""
        time.sleep(_ENDED_BY_SECONDS)
        for process in self._members(cgroup) - {0}:
            with contextlib.suppress(OSError):
                descriptor = os.pidfd_open(process)
                try:
                    _libc.syscall(ctypes.c_long(_PROCESS_MRELEASE), ctypes.c_long(descriptor), ctypes.c_long(0))
                finally:
                    os.close(descriptor)

    def _kill_one_by_one(self, cgroup: str) -> set[int]:
        """Again while new ones are found, since a process may fork until it is hit; not for longer than the bound."""
        deadline = self._monotonic() + _BOUND_SECONDS
        seen: set[int] = set()
        done: set[int] = set()
        reached: set[int] = set()
        while fresh := self._fresh(cgroup, done, nobody_yet=not reached):
            seen |= fresh
            waiting = sorted(fresh)
            while waiting:
                took, missed = self._signalled(cgroup, waiting[:_HELD_AT_ONCE])
                reached |= took
                done |= set(waiting[:_HELD_AT_ONCE]) - missed
                del waiting[:_HELD_AT_ONCE]
            if self._monotonic() > deadline:
                break
        self._thaw(cgroup, seen)
        return reached

    def _fresh(self, cgroup: str, done: set[int], *, nobody_yet: bool) -> set[int]:
        """Where looking finds nobody all processes are asked: one that moves between cgroups of its own may be missed
        in each, as these are looked into one after the other."""
        fresh = self._mortal(self._members(cgroup) - done)
        if fresh or not nobody_yet or not self._has_cgroups_of_its_own(cgroup):
            return fresh
        return self._mortal(self._told_by_processes(cgroup) - done)

    def _has_cgroups_of_its_own(self, cgroup: str) -> bool:
        """Below those of its containers, which the runtime made."""
        with reachable_folders(str(self._tree / cgroup.lstrip("/")), _MOST_FOLDERS) as looked_into:
            return any(folder.below.count("/") > 1 for folder in looked_into)

    def _thaw(self, cgroup: str, processes: set[int]) -> None:
        """From the pod's own cgroup down: those of its cgroups that are looked into, and all that the processes are in.

        A path that is longer than the kernel tells is found by looking, one among too many by what a process tells.
        """
        if self._freezer is None or not self._freezer.is_dir():
            return
        top = str(self._freezer / cgroup.lstrip("/"))
        thaw(top, _MOST_FOLDERS)
        frozen: dict[str, None] = {}
        for path in {self._cgroup_of(process, FREEZER) for process in processes}:
            if _is_in(path, cgroup):
                steps = path.removeprefix(cgroup).split("/")
                frozen |= dict.fromkeys("/".join(steps[: depth + 1]) for depth in range(len(steps)))
        for below in sorted(frozen, key=lambda each: each.count("/")):
            thawed(top + below)

    def _members(self, cgroup: str) -> set[int]:
        found, is_all = self._looked_up(cgroup)
        return found if is_all else found | self._told_by_processes(cgroup)

    def _still_there(self, cgroup: str, processes: Set[int]) -> set[int]:
        """One that moves from one of its cgroups to another may be missed by looking, and tells itself where it is."""
        found, _ = self._looked_up(cgroup)
        return {p for p in processes if p in found or _is_in(self._cgroup_of(p, self._hierarchy), cgroup)}

    def _looked_up(self, cgroup: str) -> tuple[set[int], bool]:
        """Processes of the cgroups that are looked into, and whether these are all."""
        found: set[int] = set()
        with reachable_folders(str(self._tree / cgroup.lstrip("/")), _MOST_FOLDERS) as looked_into:
            for folder in looked_into:
                # A cgroup that vanished holds nobody; a threaded one's processes are told by the cgroup above it.
                with contextlib.suppress(OSError, ValueError):
                    found.update(map(int, Path(folder.path, "cgroup.procs").read_bytes().split()))
        return found, len(looked_into) < _MOST_FOLDERS

    def _told_by_processes(self, cgroup: str) -> set[int]:
        """Of whom there are fewer than of cgroups: process numbers are limited, cgroups are not."""
        try:
            with os.scandir(self._proc) as entries:
                processes = [int(entry.name) for entry in entries if entry.name.isdigit()]
        except OSError:
            return set()
        return {process for process in processes if _is_in(self._cgroup_of(process, self._hierarchy), cgroup)}

    def _cgroup_of(self, process: int, hierarchy: str) -> str:
        """Of a v1 hierarchy, or of v2's ("0::/path"); empty where it cannot be told.

        A process whose first thread has ended is told to be at the top, though its other threads are where they were.
        """
        found = self._told(self._proc / str(process), hierarchy)
        if found != "/":
            return found
        try:
            with os.scandir(self._proc / str(process) / "task") as entries:
                threads = [Path(entry.path) for entry in islice(entries, _MOST_THREADS)]
        except OSError:
            return found
        return next((path for thread in threads if (path := self._told(thread, hierarchy)) not in ("", "/")), found)

    def _told(self, task: Path, hierarchy: str) -> str:
        try:
            text = os.fsdecode((task / "cgroup").read_bytes())
        except OSError:
            return ""
        # A name of a cgroup may have any other sign that Python would end a line at.
        for line in text.split("\n"):
            _, controllers, path = (*line.split(":", 2), "", "")[:3]
            if hierarchy in controllers.split(","):
                return path
        return ""

    def _signalled(self, cgroup: str, processes: list[int]) -> tuple[set[int], set[int]]:
        """Which of them took it, and which live and were not seen in the cgroup. Whoever starts enough processes has
        numbers given out again, those of its own that ended meanwhile to others: each is held first, and then has to be
        in the cgroup still."""
        held: dict[int, int | None] = {}
        with contextlib.ExitStack() as stack:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    held[process] = _descriptor_of(process, stack)
            there = self._still_there(cgroup, held.keys())
            return {process for process in there if self._took_it(process, held[process])}, held.keys() - there

    def _took_it(self, process: int, descriptor: int | None) -> bool:
        try:
            if descriptor is None:
                os.kill(process, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except ProcessLookupError:
            return False
        except OSError:
            self.failed_signals += 1
            return False
        return True

    def _mortal(self, processes: set[int]) -> set[int]:
        """Without init, ourselves, kernel threads, and 0, which is a process of another PID namespace."""
        return {p for p in processes - {0, 1, os.getpid()} if not self._is_kernel_thread(p)}

    def _is_kernel_thread(self, process: int) -> bool:
        try:
            fields = (self._proc / str(process) / "stat").read_bytes().rpartition(b")")[2].split()
            return bool(int(fields[6]) & _PF_KTHREAD)
        except (OSError, ValueError, IndexError):
            return False


def _kill_all_in(file: Path, done: threading.Event) -> None:
    """By a cgroup's cgroup.kill; `done` where the kernel took it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, b"1")
            done.set()
        finally:
            os.close(descriptor)


def _descriptor_of(process: int, stack: contextlib.ExitStack) -> int | None:
    """Of whoever has the number now, until the stack's end; None where there is none to be had. Raises
    ProcessLookupError."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        raise
    except OSError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor


def _is_in(path: str, cgroup: str) -> bool:
    return path == cgroup or path.startswith(f"{cgroup}/")
