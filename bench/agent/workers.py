"""Live processes in some of the containers, so that counters move while they are read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import TracebackType

from bench.tree import BenchTree

# Works 3 ms each 0.3 s in 128 KiB of fresh memory; ends by itself once its input closes, so it never outlives us.
_WORK = """
import select, sys, time
print(flush=True)
sys.stdin.readline()
while not select.select([sys.stdin], [], [], 0.3)[0]:
    page, end = bytearray(1 << 17), time.process_time() + 0.003
    while time.process_time() < end:
        page[0] += 1 if page[0] < 255 else -255
"""
# One worker wants 3 ms at once and gets 1 ms in 100: it is throttled each time, so that throttling counters move too.
_PERIOD_US, _QUOTA_US = 100_000, 1_000


class Workers:
    """`count` processes spread over the containers; all of them are ended on leaving."""

    def __init__(self, tree: BenchTree, count: int) -> None:
        self._tree = tree
        count = min(count, len(tree.containers))
        self._homes = [tree.containers[index * len(tree.containers) // count] for index in range(count)]
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        try:
            for home in self._homes:
                self._running.append(self._start(home))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._running:
            process.kill()
            process.wait()

    def pause(self) -> None:
        """Stand still, so that every reader must find the same numbers."""
        for process in self._running:
            process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        for process in self._running:
            process.send_signal(signal.SIGCONT)

    def _start(self, home: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", "-c", _WORK]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True)
        assert process.stdin is not None and process.stdout is not None
        try:
            # Its interpreter starts before the quota holds it back.
            process.stdout.readline()
            for directory in self._tree.directories(home):
                (directory / "cgroup.procs").write_text(str(process.pid))
            self._limit(home)
            process.stdin.write(b"\n")
            process.stdin.flush()
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process

    def _limit(self, home: str) -> None:
        mounts = self._tree.hierarchies.mounts
        if self._tree.hierarchies.version == 2:
            _write(f"{mounts['']}{home}/cpu.max", f"{_QUOTA_US} {_PERIOD_US}")
        else:
            _write(f"{mounts['cpu']}{home}/cpu.cfs_quota_us", str(_QUOTA_US))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
