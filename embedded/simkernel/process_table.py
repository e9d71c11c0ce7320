"""Processes of this machine as /proc tells of them (proc(5)): who began whom, CPU time, memory of their own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_US_PER_TICK = 1_000_000 // os.sysconf("SC_CLK_TCK")
_ENVIRONMENT_BYTES = 1 << 20
# Longer than it takes to be heard, shorter than it takes all process numbers to be used up.
_SOON_TICKS = 10 * os.sysconf("SC_CLK_TCK")


class Process(msgspec.Struct, frozen=True):
    """One process; `cpu_us` holds its own time and that of the children it waited for."""

    pid: int
    parent: int
    session: int
    started_ticks: int
    state: str
    cpu_us: int

    @property
    def alive(self) -> bool:
        return self.state not in ("Z", "X")

    @property
    def stopped(self) -> bool:
        return self.state == "T"

    def in_session_of(self, began_ticks: int, leader: Process | None) -> bool:
        """Its session is the one begun then, and not another's with the same number.

        A number stays taken while anybody is in its session, so a session without `leader` is the same
        one or a later one whose leader is gone too: whoever began soon after the first leader is of the first.
        """
        if leader is not None:
            return leader.started_ticks == began_ticks
        return 0 <= self.started_ticks - began_ticks <= _SOON_TICKS


def parse(stat: str) -> Process:
    """Of /proc/PID/stat; the name in it may hold anything. Raises ValueError, IndexError."""
    fields = stat.rpartition(")")[2].split()
    pid = int(stat.split(" ", 1)[0])
    ticks = sum(int(field) for field in fields[11:15])
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0], ticks * _US_PER_TICK)


class ProcessTable:
    """Reads /proc; `proc` is where it is mounted."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc

    def pids(self) -> set[int]:
        return {int(name) for name in os.listdir(self._proc) if name.isdigit()}  # noqa: PTH208 — every 25 ms

    def look(self, pid: int) -> Process | None:
        """None where there is none."""
        with suppress(OSError, ValueError, IndexError):
            return parse(self._content(pid, "stat"))
        return None

    def look_at(self, pids: Iterable[int]) -> dict[int, Process]:
        """Those that exist."""
        found = ((pid, self.look(pid)) for pid in pids)
        return {pid: process for pid, process in found if process is not None}

    def in_sessions(self, leaders: Mapping[int, int]) -> set[int]:
        """Live processes of the sessions that these began, each with its start time."""
        seen = self.look_at(self.pids())
        inside = (each for each in seen.values() if each.alive and each.session in leaders)
        found = {each.pid for each in inside if each.in_session_of(leaders[each.session], seen.get(each.session))}
        return found - {os.getpid()}

    def variable(self, pid: int, name: str) -> str | None:
        """Of the environment it began with; None also where that is not ours to read."""
        try:
            with open(f"{self._proc}/{pid}/environ", "rb") as file:  # noqa: PTH123 — for every process that begins
                words = file.read(_ENVIRONMENT_BYTES).split(b"\0")
        except OSError:
            return None
        start = f"{name}=".encode()
        return next((os.fsdecode(word[len(start) :]) for word in words if word.startswith(start)), None)

    def own_memory(self, pid: int) -> int:
        """Bytes in memory that are no file's; what it shares with a parent since their fork counts for both."""
        with suppress(OSError, ValueError, IndexError):
            _, resident, shared, *_ = self._content(pid, "statm").split()
            return max(int(resident) - int(shared), 0) * _PAGE_BYTES
        return 0

    def fair_memory(self, pid: int) -> int:
        """The same with its share of what is shared, at a hundred times the cost."""
        with suppress(OSError, ValueError, IndexError):
            for line in self._content(pid, "smaps_rollup").splitlines():
                if line.startswith("Pss_Anon:"):
                    return int(line.split()[1]) << 10
        return self.own_memory(pid)

    def _content(self, pid: int, file: str) -> str:
        descriptor = os.open(f"{self._proc}/{pid}/{file}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 4096).decode(errors="replace")
        finally:
            os.close(descriptor)
