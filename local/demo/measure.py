"""Measurements of the demonstration: CPU time, best-effort quota, and the machine's description."""

from __future__ import annotations

import os
import platform
import threading
import time
from pathlib import Path

import msgspec
import psutil

from embedded.cgroups.knobs import number_of
from embedded.cgroups.ownership import started_ticks
from local.rundir import NodeEndpoints

UNLIMITED = -1


class CpuTime(msgspec.Struct, frozen=True):
    """Ticks of all CPUs since boot (/proc/stat)."""

    busy: int
    total: int

    def utilisation_pct(self, later: CpuTime) -> float:
        """Percent of all CPUs that was busy from this reading to `later`."""
        passed = later.total - self.total
        return 100.0 * (later.busy - self.busy) / passed if passed > 0 else 0.0

    def others_pct(self, later: CpuTime, own_ticks: float) -> float:
        """Percent of all CPUs that work of others kept busy, where `own_ticks` of it were one's own."""
        passed = later.total - self.total
        return 100.0 * max(later.busy - self.busy - own_ticks, 0.0) / passed if passed > 0 else 0.0


def parse_cpu_time(stat: str) -> CpuTime:
    """The first line of /proc/stat; idle and iowait are not busy, stolen time is nobody's."""
    user, nice, system, idle, iowait, irq, softirq, *_ = (int(field) for field in stat.split("\n")[0].split()[1:])
    busy = user + nice + system + irq + softirq
    return CpuTime(busy, busy + idle + iowait)


def read_cpu_time() -> CpuTime:
    return parse_cpu_time(Path("/proc/stat").read_text())


def own_cpu_ticks() -> float:
    """What this process and all below it have used, those that ended included: their parent bears their time.

    Whoever is adopted from outside the tree, or leaves it, counts as somebody else.
    """
    this = psutil.Process()
    seconds = sum(_cpu_seconds_of(process) for process in (this, *this.children(recursive=True)))
    return seconds * os.sysconf("SC_CLK_TCK")


class OtherWork:
    """How busy others keep the CPUs from now on."""

    def __init__(self) -> None:
        self._cpu, self._own = read_cpu_time(), own_cpu_ticks()

    def pct(self) -> float:
        """Percent of all CPUs since the beginning."""
        cpu, own = read_cpu_time(), own_cpu_ticks()
        return self._cpu.others_pct(cpu, own - self._own)


def _cpu_seconds_of(process: psutil.Process) -> float:
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.Error:
        return 0.0


class QuotaSample(msgspec.Struct, frozen=True):
    """A quota; `at` is the monotonic clock, -1 is no limit."""

    at: float
    quota_us: int


class QuotaCut(msgspec.Struct, frozen=True):
    """The first time the quota was lower than at the surge: from what to what, and how low it went afterwards."""

    after_seconds: float
    from_us: int
    to_us: int
    lowest_us: int


def first_cut(samples: list[QuotaSample], surge_at: float) -> QuotaCut | None:
    """The first sample after the surge that is below the value at the surge; None where there is none."""
    before = [sample for sample in samples if sample.at <= surge_at]
    if not before:
        return None
    start = before[-1].quota_us
    lower = [s for s in samples if s.at > surge_at and _limit(s.quota_us) < _limit(start)]
    if not lower:
        return None
    lowest = min(sample.quota_us for sample in lower)
    return QuotaCut(lower[0].at - surge_at, start, lower[0].quota_us, lowest)


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
                value = parse_quota(os.pread(descriptor, 64, 0).decode())
                if value is None:
                    continue
                if not self.samples or self.samples[-1].quota_us != value:
                    self.samples.append(QuotaSample(time.monotonic(), value))
        except OSError:
            # The cgroup went away: what was read so far stands.
            return
        finally:
            os.close(descriptor)


def parse_quota(text: str) -> int | None:
    """us per period of cpu.cfs_quota_us or cpu.max; None for a file that is being written."""
    word = text.split()[:1]
    return None if not word else UNLIMITED if word[0] == "max" else int(word[0])


def besteffort_quota_file(node: NodeEndpoints) -> Path:
    """The ceiling of all best-effort pods together."""
    name = "cpu.max" if node.cgroup_version == 2 else "cpu.cfs_quota_us"
    return _kubepods(node, "cpu") / "besteffort" / name


def pods_cpu_seconds(node: NodeEndpoints, uids: list[str]) -> float:
    """CPU seconds the pods have used since they began; a pod without a cgroup counts nothing."""
    name = "cpu.stat" if node.cgroup_version == 2 else "cpuacct.usage"
    files = [path for uid in uids for path in _kubepods(node, "cpuacct").glob(f"**/pod{uid}/{name}")]
    return sum(_cpu_seconds(path) for path in files)


def _kubepods(node: NodeEndpoints, controller: str) -> Path:
    mount = Path(node.cgroup_root) / ("" if node.cgroup_version == 2 else controller)
    return mount / node.kubepods.strip("/")


def _cpu_seconds(path: Path) -> float:
    try:
        text = path.read_text()
        return number_of("usage_usec", text) / 1e6 if path.name == "cpu.stat" else int(text) / 1e9
    except (OSError, ValueError):
        return 0.0


def describe_machine(node: NodeEndpoints) -> str:
    """Cores, memory, kernel, cgroups and Python, on one line."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    version = "simulated" if node.kernel == "simulated" else f"v{node.cgroup_version}"
    return (
        f"{os.cpu_count()} CPUs, {pages * page / 2**30:.0f} GiB, Linux {platform.release()}, "
        f"cgroups {version}, Python {platform.python_version()}"
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
