"""What the demonstration reads from the machine: CPU time, best-effort quota, and what the machine is."""

from __future__ import annotations

import os
import platform
import threading
import time
from pathlib import Path

import msgspec

from local.node.ownership import started_ticks

CGROUP_ROOT = Path("/sys/fs/cgroup")
UNLIMITED = -1


class CpuTime(msgspec.Struct, frozen=True):
    """Ticks of all CPUs since boot (/proc/stat)."""

    busy: int
    total: int

    def utilisation_pct(self, later: CpuTime) -> float:
        """Percent of all CPUs that was busy from this reading to `later`."""
        passed = later.total - self.total
        return 100.0 * (later.busy - self.busy) / passed if passed > 0 else 0.0


def parse_cpu_time(stat: str) -> CpuTime:
    """The first line of /proc/stat; idle and iowait are not busy, stolen time is nobody's."""
    user, nice, system, idle, iowait, irq, softirq, *_ = (int(field) for field in stat.split("\n")[0].split()[1:])
    busy = user + nice + system + irq + softirq
    return CpuTime(busy, busy + idle + iowait)


def read_cpu_time() -> CpuTime:
    return parse_cpu_time(Path("/proc/stat").read_text())


class QuotaSample(msgspec.Struct, frozen=True):
    """A value of cpu.cfs_quota_us; `at` is the monotonic clock, -1 is no limit."""

    at: float
    quota_us: int


class Cut(msgspec.Struct, frozen=True):
    """The first time the quota was lower than at the surge: from what to what, and how low it went afterwards."""

    after_seconds: float
    from_us: int
    to_us: int
    lowest_us: int


def first_cut(samples: list[QuotaSample], surge_at: float) -> Cut | None:
    """The first sample after the surge that is below the value at the surge; None where there is none."""
    before = [sample for sample in samples if sample.at <= surge_at]
    if not before:
        return None
    start = before[-1].quota_us
    lower = [s for s in samples if s.at > surge_at and _limit(s.quota_us) < _limit(start)]
    if not lower:
        return None
    lowest = min(sample.quota_us for sample in lower)
    return Cut(lower[0].at - surge_at, start, lower[0].quota_us, lowest)


def _limit(quota_us: int) -> float:
    return float("inf") if quota_us == UNLIMITED else float(quota_us)


class QuotaTrace:
    """Reads a quota file each 10 ms in a thread of its own, from start() to stop(); keeps the changes."""

    def __init__(self, path: Path, interval_seconds: float = 0.01) -> None:
        self._path = path
        self._interval = interval_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True, name="quota-trace")
        self.samples: list[QuotaSample] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> list[QuotaSample]:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        return self.samples

    def _read(self) -> None:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            while not self._ended.wait(self._interval):
                value = int(os.pread(descriptor, 32, 0))
                if not self.samples or self.samples[-1].quota_us != value:
                    self.samples.append(QuotaSample(time.monotonic(), value))
        except OSError:
            # The cgroup went away: what was read so far stands.
            return
        finally:
            os.close(descriptor)


def besteffort_quota_file(cgroup_prefix: str) -> Path:
    """The ceiling of all best-effort pods together (cgroup v1)."""
    return CGROUP_ROOT / "cpu" / cgroup_prefix.strip("/") / "kubepods" / "besteffort" / "cpu.cfs_quota_us"


def pods_cpu_seconds(cgroup_prefix: str, uids: list[str]) -> float:
    """CPU seconds the pods have used since they began (cgroup v1); a pod without a cgroup counts nothing."""
    kubepods = CGROUP_ROOT / "cpuacct" / cgroup_prefix.strip("/") / "kubepods"
    files = [path for uid in uids for path in kubepods.glob(f"**/pod{uid}/cpuacct.usage")]
    return sum(_read_number(path) for path in files) / 1e9


def _read_number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def describe_machine() -> str:
    """Cores, memory, kernel, cgroup version and Python, on one line."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    version = "v2" if (CGROUP_ROOT / "cgroup.controllers").exists() else "v1"
    return (
        f"{os.cpu_count()} CPUs, {pages * page / 2**30:.0f} GiB, Linux {platform.release()}, "
        f"cgroup {version}, Python {platform.python_version()}"
    )


class ProcessMark(msgspec.Struct, frozen=True):
    """A process that cannot be mistaken for a later one with the same id."""

    pid: int
    started_ticks: int


def mark_process(pid: int) -> ProcessMark | None:
    """None where it does not live; a zombie counts as gone."""
    started = started_ticks(pid)
    return None if started is None else ProcessMark(pid, started)


def still_alive(marks: list[ProcessMark]) -> list[int]:
    return [mark.pid for mark in marks if mark_process(mark.pid) == mark]
