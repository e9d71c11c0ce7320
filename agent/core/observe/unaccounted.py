"""Unaccounted CPU time: what /proc/stat says of no CPU, neither that it was busy nor that it was idle.

Most kernels learn who is busy by looking at each clock tick (CONFIG_TICK_CPU_ACCOUNTING), while idle time is measured.
Work that sleeps whenever the tick comes is in neither (measured: 0.59 of a CPU), nor is a tick that a hypervisor took
without a word. It was used all the same: what batch pods hide so would look like less use by the system.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from agent.core.observe.parse import counter

_CPU_LINE = re.compile(rb"^cpu(\d{1,5}) (.*)\n", re.MULTILINE)
_UPTIME = re.compile(rb"(\d{1,9})\.(\d\d) \d+\.\d\d\n")
_COUNTED = 8
"""user to steal; what guests use is in user."""
_LARGEST = (1 << 63) - 1
_NS_PER_HUNDREDTH = 10_000_000
_LEAST_NOISE_NS = 1_000_000_000
_NOISE_NS_PER_CPU = 50_000_000
"""Readings a moment apart, and ticks that meet more or less work than there was, even out within so much."""


class AccountedTime(msgspec.Struct, frozen=True):
    """Time since boot (ns), and of that what /proc/stat has of each CPU that is online, in whatever state (ns)."""

    uptime_ns: int
    by_cpu_ns: Mapping[int, int]


class Unaccounted(msgspec.Struct, frozen=True):
    """`total_ns` of CPU time since the first reading; `balance_ns` is what noise may still explain, 0 or less."""

    newest: AccountedTime | None = None
    balance_ns: int = 0
    total_ns: int = 0


def uptime_ns(text: bytes) -> int:
    """The first number of /proc/uptime. Raises ValueError."""
    found = _UPTIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:60].decode(errors='replace')!r} is not /proc/uptime")
    return int(found[1] + found[2]) * _NS_PER_HUNDREDTH


def accounted_ticks(stat: bytes) -> dict[int, int]:
    """Clock ticks of all states, of /proc/stat's cpuN lines. Raises ValueError."""
    found = {int(cpu): sum(map(counter, line.split()[:_COUNTED])) for cpu, line in _CPU_LINE.findall(stat)}
    if max(found.values(), default=0) > _LARGEST:
        raise ValueError(f"a CPU's ticks are beyond any counter in {stat[:60].decode(errors='replace')!r}")
    return found


def followed(before: Unaccounted, now: AccountedTime) -> Unaccounted:
    """After one more reading. CPUs that came or went in between say nothing; nor does one that counted backwards."""
    if before.newest is None:
        return Unaccounted(now, -_noise_ns(now), before.total_ns)
    old, passed = before.newest.by_cpu_ns, now.uptime_ns - before.newest.uptime_ns
    grown = [ns - old[cpu] for cpu, ns in now.by_cpu_ns.items() if cpu in old and ns >= old[cpu]]
    missing = passed * len(grown) - sum(grown)
    balance = max(before.balance_ns + missing, -_noise_ns(now))
    return Unaccounted(now, min(balance, 0), before.total_ns + max(balance, 0))


def _noise_ns(now: AccountedTime) -> int:
    return max(_LEAST_NOISE_NS, _NOISE_NS_PER_CPU * len(now.by_cpu_ns))
