"""A lock that batch work holds while an online process waits for it: the inode lock of one file that both write to.

Online processes that never rest leave the holder what its weight gives it, so that it keeps the lock for long.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import psutil

from bench.colocate.loads import Programs, started

COUNTERS, LATENCIES, _LOCKED = "counters", "latencies", "locked"


class LockSetting(msgspec.Struct, frozen=True):
    """The programs, the folder of their files, and the service's cgroup, one directory a hierarchy."""

    programs: Programs
    folder: Path
    directories: Sequence[Path]


def holder(programs: Programs, folder: Path, slot: int) -> list[str | Path]:
    """The command of the batch process that writes 8 MiB at a time; counted at `slot`."""
    return [programs.path("lockholder"), folder / COUNTERS, str(slot), folder / _LOCKED]


@contextmanager
def busy(setting: LockSetting, slots: Sequence[int]) -> Iterator[None]:
    """An online process without rest for each of these slots."""
    with ExitStack() as stack:
        for slot in slots:
            command: list[str | Path] = [setting.programs.path("spinner"), setting.folder / COUNTERS, str(slot)]
            stack.enter_context(started(command, setting.directories))
        yield


def waiter(setting: LockSetting, per_second: float, times_ns: Sequence[str]) -> psutil.Popen:
    """The online process that writes a byte so often; `times_ns`: begin, warm, measured, as of the generator."""
    command = [setting.programs.path("lockwaiter"), setting.folder / _LOCKED, f"{per_second:.0f}"]
    command += [*times_ns, setting.folder / LATENCIES]
    process = psutil.Popen(list(map(str, command)), stdout=subprocess.PIPE, start_new_session=True)
    for directory in setting.directories:
        (directory / "cgroup.procs").write_text(str(process.pid))
    return process
