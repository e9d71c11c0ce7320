"""What an agent is shown of the machine where its node is only a part of it, or claims to be more than it is.

A directory that looks like /proc and one that looks like /sys. CPU time and memory in use are those of the node's own
pods and its part of everything that is no pod. What the node claims beyond its true share counts as in use for ever, so
that who lends what is idle lends nothing that does not exist; who lends what nobody requested learns it from the Node
(`node_object.true_amounts`). Source of the forms: proc(5), sysfs-devices-system-cpu.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from embedded.cgroups.knobs import Use
from embedded.cpu_lists import format_cpus
from embedded.node.machine.share import Share

_TICKS = os.sysconf("SC_CLK_TCK")
_NS_PER_TICK = 1_000_000_000 // _TICKS
_DIGITS = 15


class Reading(msgspec.Struct, frozen=True):
    """Of the whole machine at one moment: ticks since boot, bytes, and what the pods of each node used, by id."""

    busy_ticks: int
    total_bytes: int
    available_bytes: int
    pods: Mapping[str, Use | None]
    uptime_seconds: float


class Part(msgspec.Struct, frozen=True):
    """What the node is shown: ticks since it began, and bytes.

    `use` is what truly is in use of it, without what the node only claims to have.
    """

    busy_ticks: int
    passed_ticks: int
    available_bytes: int
    use: Use


class Accounting:
    """From readings of the machine to the node's part; counters only ever grow."""

    def __init__(self, share: Share, id_: str) -> None:
        self._share = share
        self._id = id_
        self._began: float | None = None
        self._first_busy = 0
        self._last_ns: dict[str, int] = {}
        self._used_ns: dict[str, int] = {}
        self._system_ticks = 0

    def part(self, seen: Reading) -> Part:
        if self._began is None:
            self._began, self._first_busy = seen.uptime_seconds, seen.busy_ticks
        for id_, use in seen.pods.items():
            self._add(id_, use)
        passed = int((seen.uptime_seconds - self._began) * _TICKS)
        pods = sum(self._used_ns.values()) // _NS_PER_TICK
        self._system_ticks = max(self._system_ticks, seen.busy_ticks - self._first_busy - pods)
        own = self._used_ns.get(self._id, 0) // _NS_PER_TICK
        share = self._share
        phantom = max(share.claimed_cpu_millis - share.cpu_millis, 0) * passed // 1000
        busy, own_use, others = own + self._system_ticks // share.of, seen.pods.get(self._id), self._others(seen)
        held, working_set = (own_use.memory_bytes, own_use.working_set_bytes) if own_use else (0, 0)
        return Part(
            busy_ticks=busy + phantom,
            passed_ticks=passed * share.claimed_cpu_millis // 1000,
            available_bytes=max(min(share.bound_memory_bytes - working_set - others, seen.available_bytes), 0),
            use=Use(busy * _NS_PER_TICK, held + others, working_set + others),
        )

    def _add(self, id_: str, use: Use | None) -> None:
        """A node that began again counts from 0 again."""
        now = use.cpu_ns if use else 0
        self._used_ns[id_] = self._used_ns.get(id_, 0) + max(now - self._last_ns.get(id_, now), 0)
        self._last_ns[id_] = now

    def _others(self, seen: Reading) -> int:
        """Bytes: the node's part of what nobody's pods hold."""
        pods = sum(use.working_set_bytes for use in seen.pods.values() if use)
        return max(seen.total_bytes - seen.available_bytes - pods, 0) // self._share.of


def stat_text(part: Part, share: Share, machine: str) -> str:
    """/proc/stat: the node's line, then one for each CPU it has and each it only claims, whose length never changes."""
    lines = [_cpu_line("cpu ", part.busy_ticks, part.passed_ticks)]
    own = {line.split(" ", 1)[0]: line for line in machine.splitlines() if line.startswith("cpu")}
    named = [own[f"cpu{cpu}"] for cpu in share.cpus if f"cpu{cpu}" in own]
    missing = -(-share.claimed_cpu_millis // 1000) - len(named)
    highest = max(share.cpus, default=-1)
    named += [_cpu_line(f"cpu{highest + 1 + extra}", part.passed_ticks, part.passed_ticks) for extra in range(missing)]
    return "\n".join([*lines, *named[: max(-(-share.claimed_cpu_millis // 1000), 1)], ""])


def meminfo_text(part: Part, share: Share) -> str:
    """/proc/meminfo, with what everybody reads of it."""
    rows = {
        "MemTotal": share.claimed_memory_bytes,
        "MemFree": part.available_bytes,
        "MemAvailable": part.available_bytes,
        "Active(file)": 0,
        "Inactive(file)": 0,
        "SReclaimable": 0,
    }
    return "".join(f"{name + ':':<16}{size >> 10:>{_DIGITS}} kB\n" for name, size in rows.items())


class View:
    """The directories; `write` is called some times a second."""

    def __init__(self, directory: Path, share: Share) -> None:
        self.proc, self.sys = directory / "proc", directory / "sys"
        self._share = share
        self._descriptors: dict[str, int] = {}

    def make(self) -> None:
        """Raises OSError."""
        cpus = self.sys / "devices/system/cpu"
        for folder in (self.proc, cpus):
            folder.mkdir(parents=True, exist_ok=True)
        for name in ("cpuinfo", "net", "pressure", "uptime", "loadavg", "vmstat", "sys"):
            _link(self.proc / name, f"/proc/{name}")
        _link(self.sys / "devices/system/node", "/sys/devices/system/node")
        for cpu in self._share.cpus:
            _link(cpus / f"cpu{cpu}", f"/sys/devices/system/cpu/cpu{cpu}")
        (cpus / "online").write_text(format_cpus(self._share.cpus) + "\n")

    def write(self, part: Part, machine_stat: str) -> None:
        """In place: readers keep the files open. Raises OSError."""
        self._overwrite("stat", stat_text(part, self._share, machine_stat))
        self._overwrite("meminfo", meminfo_text(part, self._share))

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _overwrite(self, name: str, text: str) -> None:
        if name not in self._descriptors:
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._descriptors[name] = os.open(self.proc / name, flags, 0o600)
            os.fchmod(self._descriptors[name], 0o444)  # as /proc has them: containers of any user read these
        content = text.encode()
        os.pwrite(self._descriptors[name], content, 0)
        os.ftruncate(self._descriptors[name], len(content))


def read_machine_use(pods: Mapping[str, Use | None]) -> tuple[Reading, str]:
    """This machine now, and its /proc/stat. Raises OSError, ValueError."""
    stat = Path("/proc/stat").read_text()
    numbers = [int(field) for field in stat.split("\n", 1)[0].split()[1:]]
    memory = Path("/proc/meminfo").read_text()
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    busy = sum(numbers[:3]) + sum(numbers[5:8])
    total, available = _kib(memory, "MemTotal"), _kib(memory, "MemAvailable")
    return Reading(busy, total << 10, available << 10, pods, uptime), stat


def _kib(meminfo: str, name: str) -> int:
    for line in meminfo.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise ValueError(f"no {name} in /proc/meminfo")


def _cpu_line(name: str, busy: int, passed: int) -> str:
    numbers: Sequence[int] = (busy, 0, 0, max(passed - busy, 0), 0, 0, 0, 0, 0, 0)
    return f"{name} " + " ".join(f"{number:0{_DIGITS}}" for number in numbers)


def _link(path: Path, target: str) -> None:
    with suppress(FileExistsError):
        path.symlink_to(target)
