"""Isolated CPUs: those that the kernel's scheduler balances nobody onto (`isolcpus`).

Whoever is not bound to such a CPU never gets there: what it leaves idle is of use to nobody, and all of its time counts
as used, as what a hypervisor steals does. A CPU that is merely in `nohz_full` is balanced onto. Source: kernel
kernel/sched/isolation.c, /sys/devices/system/cpu/isolated.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from agent.core.observe.parse import counter
from model.topology import parse_cpus

_IDLE = re.compile(rb"^cpu([0-9]{1,5})(?: [0-9]{1,20}){3} ([0-9]{1,20}) ([0-9]{1,20}) ", re.MULTILINE)


def cpu_numbers(text: bytes) -> frozenset[int]:
    """Of a list such as `4-7`; none of an empty one. Raises ValueError."""
    return frozenset(parse_cpus(text.decode(errors="replace")))


def idle_ticks(stat: bytes, cpus: Collection[int]) -> int:
    """Clock ticks these CPUs had nothing to do, waiting for a disk included, of /proc/stat's cpuN lines.

    Raises ValueError.
    """
    if not cpus:
        return 0
    return sum(counter(idle) + counter(iowait) for cpu, idle, iowait in _IDLE.findall(stat) if int(cpu) in cpus)
