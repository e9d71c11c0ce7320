"""Kernel text to numbers. Each parser takes the file's bytes and raises ValueError saying what is wrong.

The kernel's own text is short and regular, so the parsers split and index instead of scanning twice; garbage never
becomes a number by accident.
"""

from __future__ import annotations

import msgspec

from model.report import Pressure


class CpuThrottling(msgspec.Struct, frozen=True):
    """Counters of cpu.stat (v1): enforcement periods, and those in which the group was throttled."""

    periods: int
    throttled: int


def whole_number(text: bytes) -> int:
    """A file with one decimal number, such as cpuacct.usage or cpu.shares; -1 is allowed."""
    stripped = text.strip()
    digits = stripped[1:] if stripped[:1] == b"-" else stripped
    if not digits.isdigit():
        raise ValueError(f"{_shown(text)} is not a whole number")
    return int(stripped)


def flat_keyed(text: bytes, keys: tuple[bytes, ...]) -> tuple[int, ...]:
    """Values of `keys` in a file of `key value` lines, such as memory.stat; every key must be there."""
    found = dict(line.split(b" ", 1) for line in text.splitlines() if b" " in line)
    missing = [key.decode() for key in keys if key not in found]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing in {_shown(text)}")
    return tuple(whole_number(found[key]) for key in keys)


def anonymous_memory(text: bytes) -> int:
    """Bytes that cannot be dropped: Koordinator's usage without page cache (v1 memory.stat totals)."""
    return sum(flat_keyed(text, (b"total_inactive_anon", b"total_active_anon", b"total_unevictable")))


def throttling(text: bytes) -> CpuThrottling:
    """cpu.stat of cgroup v1."""
    return CpuThrottling(*flat_keyed(text, (b"nr_periods", b"nr_throttled")))


def busy_ticks(text: bytes) -> int:
    """Clock ticks all CPUs were busy: user + nice + system + irq + softirq of /proc/stat's first line.

    Idle, iowait and steal are not counted (Koordinator pkg/koordlet/util/stat.go).
    """
    fields = text.split(b"\n", 1)[0].split()
    if len(fields) < 8 or fields[0] != b"cpu":
        raise ValueError(f"{_shown(text)} is not the cpu line of /proc/stat")
    user, nice, system, _idle, _iowait, irq, softirq = (whole_number(field) for field in fields[1:8])
    return user + nice + system + irq + softirq


def pressure_avg10(text: bytes) -> tuple[float, float]:
    """(some avg10, full avg10) in percent of a PSI file; full is 0 where the kernel has none."""
    averages = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(b" avg10=")
        averages[kind] = float(rest.split(b" ", 1)[0])
    if b"some" not in averages:
        raise ValueError(f"{_shown(text)} is not a pressure file")
    return averages[b"some"], averages.get(b"full", 0.0)


def pressure(cpu: bytes, memory: bytes) -> Pressure:
    """The node's /proc/pressure/cpu and /proc/pressure/memory."""
    some, full = pressure_avg10(memory)
    return Pressure(pressure_avg10(cpu)[0], some, full)


def _shown(text: bytes) -> str:
    return repr(text[:60].decode(errors="replace"))
