"""Reading cgroups through cached descriptors: one pass a tick, one kind of file after the other.

A descriptor is opened once and read with pread; opening again would cost five times the reading. The kernel answers
ENODEV once the cgroup is gone, even when one of the same name was made again, so a cached descriptor never reports
another pod's numbers. An open control file holds about 6 KB of kernel memory, 28 of them a pod of two containers.
What a pass reads and what waits for its turn is said in core.observe.files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from agent.core.observe.files import (
    HELD,
    NEEDED,
    NO_MORE,
    V1_FILES,
    Cadence,
    FileKind,
    FilePart,
    Role,
    Watched,
    cadence,
    memory_events,
    moved,
    pressure,
)
from agent.core.observe.knobs import PERIOD_US
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, CgroupPressure, CgroupSample, DiskBytes, MemoryEvents, Missing
from agent.core.observe.parse import kernel_caches, kernel_memory, refaults
from model.fault import KernelFault

log = structlog.get_logger()

_CLOSED = -1
_NO_SUCH = (errno.ENOENT, errno.ENOTDIR)
_SLOW_PASSES = 10
_LOOKS = 3
"""For so many rounds, half a minute at one pass a second, an absent file of a new cgroup may still come."""
_SPARE_DESCRIPTORS = 512
_MOST_DESCRIPTORS = 1 << 20


class _File:
    """One control file of one cgroup: its descriptor and what it said last; `absent` where this kernel has no such.

    `text` is what `value` was read from: most tables of a quiet cgroup are the same text pass after pass, and comparing
    costs a tenth of parsing.
    """

    __slots__ = ("absent", "cadence", "descriptor", "fault", "kind", "row", "text", "value")

    def __init__(self, row: _Row, kind: FileKind) -> None:
        self.row = row
        self.kind = kind
        self.cadence = cadence(kind.part, row.role)
        self.descriptor = _CLOSED
        self.text: bytes | None = None
        self.value: Any = None
        self.fault: Missing | None = None
        self.absent = False


class _Row:
    """One cgroup. `gone` holds until the next pass looks again; its slow files are read in pass `turn` of a round.

    `looks` counts the rounds in which absent files are still looked for.
    """

    __slots__ = (
        *("cgroup", "role", "turn", "gone", "files", "cpu", "memory", "level", "throttling"),
        *("level_then", "looks", "pressure", "events", "disk", "changed", "last"),
    )

    def __init__(self, cgroup: str, role: Role, turn: int, kinds: Sequence[FileKind]) -> None:
        self.cgroup = cgroup
        self.role = role
        self.turn = turn
        self.gone: Missing | None = None
        files = (_File(self, kind) for kind in kinds)
        self.files = {file.kind.part: file for file in files if file.cadence is not Cadence.NEVER}
        self.cpu = self.files[FilePart.CPU]
        self.memory = self.files[FilePart.MEMORY]
        self.level = self.files.get(FilePart.LEVEL)
        self.throttling = self.files.get(FilePart.THROTTLING)
        self.level_then = 0
        self.looks = _LOOKS
        self.pressure: CgroupPressure | None = None
        self.events: MemoryEvents | None = None
        self.disk: DiskBytes | None = None
        self.changed = True
        self.last: CgroupSample | Missing = _gone(cgroup)

    def value(self, part: FilePart) -> Any:
        file = self.files.get(part)
        return file.value if file else None

    def moved(self) -> bool:
        """memory.stat is out of date, or there is no cheap level to tell."""
        level = self.level.value if self.level else None
        return level is None or self.memory.value is None or moved(level, self.level_then)

    def combine(self) -> None:
        """Put together what several slow files tell."""
        value = self.value
        self.pressure = pressure(
            value(FilePart.CPU_PRESSURE), value(FilePart.MEMORY_PRESSURE), value(FilePart.IO_PRESSURE)
        )
        self.events = memory_events(value(FilePart.OOM), value(FilePart.FAILURES))
        self.disk = value(FilePart.DISK)

    def sample(self) -> CgroupSample | Missing:
        """The very same object as before where no file said anything new."""
        if self.changed:
            self.changed = False
            self.last = self._sample()
        return self.last

    def _sample(self) -> CgroupSample | Missing:
        cpu, memory = self.cpu.value, self.memory.value
        if cpu is None or memory is None:
            return self.gone or self.cpu.fault or self.memory.fault or _gone(self.cgroup)
        throttling = self.throttling.value if self.throttling else cpu[1]
        charge = self.level.value if self.level and self.role is Role.ROOT else None
        return CgroupSample(
            cpu_ns=cpu[0],
            memory_bytes=memory[0],
            page_cache_bytes=memory[1],
            throttling=throttling,
            pressure=self.pressure,
            events=self.events,
            disk=self.disk,
            charge_bytes=charge,
            kernel_bytes=self._kernel_bytes(*memory),
            kernel_caches_bytes=self._kernel_caches(),
        )

    def _kernel_bytes(self, anonymous: int, cache: int) -> int:
        """Of a pod, when memory.stat was read."""
        if self.memory.cadence is not Cadence.WHEN_MOVED or not self.level_then:
            return 0
        return kernel_memory(self.memory.text or b"", self.level_then, anonymous, cache)

    def _kernel_caches(self) -> int:
        """The same."""
        return kernel_caches(self.memory.text or b"") if self.memory.cadence is Cadence.WHEN_MOVED else 0


class CgroupReader:
    """Reads the `files` of placed cgroups below `root` (normally /sys/fs/cgroup).

    A round of slow turns takes `slow_passes` passes; with 1 each pass reads everything. `descriptors` is how many may
    stay open: by default what this process may have, after its soft limit was raised to the hard one.
    """

    def __init__(
        self,
        root: Path,
        files: Sequence[FileKind] = V1_FILES,
        slow_passes: int = _SLOW_PASSES,
        descriptors: int | None = None,
        pread: Callable[[int, int, int], bytes] = os.pread,
    ) -> None:
        self._root = str(root)
        self._kinds = files
        self._budget = _descriptor_budget() if descriptors is None else descriptors
        self._pread = pread
        self._rows: dict[str, _Row] = {}
        self._fresh: list[_Row] = []
        self._turns: list[list[_Row]] = [[] for _ in range(slow_passes)]
        self._every: dict[FilePart, list[_File]] = {}
        self._slow: list[dict[FilePart, list[_File]]] = []
        self._roots: list[_Row] = []
        self._levelled: list[_Row] = []
        self._regroup_due = True
        self._pass = 0
        self._short = False
        self.open_descriptors = 0

    def require(self, layout: Layout) -> None:
        """Raise KernelFault where a file without which nothing can be measured does not exist."""
        for kind in self._kinds:
            path = Path(self._path(layout.best_effort, kind, kind.file))
            if kind.part in NEEDED and not path.exists():
                raise KernelFault(str(path), "does not exist", "is kubelet running here? give --kubepods its path")

    def place(self, roster: Mapping[str, Role]) -> None:
        """What to read from now on: cgroup → role. What is new is read completely in the next pass."""
        for cgroup in [c for c, row in self._rows.items() if roster.get(c) is not row.role]:
            row = self._rows.pop(cgroup)
            self._turns[row.turn].remove(row)
            self._drop(row)
            self._regroup_due = True
        for cgroup, role in roster.items():
            if cgroup not in self._rows:
                self._add(cgroup, role)

    def read(self, watched: Watched = NO_MORE) -> dict[str, CgroupSample | Missing]:
        """One pass: a sample or an absence for every placed cgroup."""
        turn = self._pass % len(self._turns)
        self._pass += 1
        self._look_again(self._turns[turn])
        if self._regroup_due:
            self._regroup()
        fresh = [row for row in self._fresh if self._rows.get(row.cgroup) is row]
        self._fresh = []
        for row in fresh:
            row.gone = None
        for kind in self._kinds:
            self._sweep(kind, self._every[kind.part])
            self._sweep(kind, self._due(kind.part, turn, fresh, watched))
        waiting = [self._rows[cgroup] for cgroup in watched.waiting if cgroup in self._rows]
        for row in (*self._roots, *self._turns[turn], *fresh, *waiting):
            if row.changed:
                row.combine()
        return {cgroup: row.sample() for cgroup, row in self._rows.items()}

    def cpus(self, cgroup: str) -> int | None:
        """How many CPUs a placed root could run on in the newest pass that told; None without one."""
        row = self._rows.get(cgroup)
        return (row.value(FilePart.CPUS) or None) if row else None

    def quota_millis(self, cgroup: str) -> int | None:
        """Milli-CPU a placed root may use; None where it has no quota, or none that was ever told."""
        row = self._rows.get(cgroup)
        quota_us, period_us = (row.value(FilePart.QUOTA), row.value(FilePart.PERIOD)) if row else (None, None)
        return None if quota_us is None or quota_us <= 0 else quota_us * 1000 // (period_us or PERIOD_US)

    def memory_limit(self, cgroup: str) -> int | None:
        """Bytes a placed root may be charged with; None where it has no limit, or none that was ever told."""
        row = self._rows.get(cgroup)
        return (row.value(FilePart.MEMORY_LIMIT) or None) if row else None

    def refaulted(self, cgroup: str) -> int | None:
        """Pages a placed root read back after they had been taken; None where that is not counted."""
        row = self._rows.get(cgroup)
        text = row.memory.text if row else None
        return None if text is None else refaults(text)

    def limit_hits(self, cgroup: str) -> int | None:
        """How often a charge met a placed root's own limit; None where that is not counted."""
        row = self._rows.get(cgroup)
        part = FilePart.LIMIT_HITS if row and FilePart.LIMIT_HITS in row.files else FilePart.FAILURES
        return row.value(part) if row else None

    def pids(self, cgroup: str) -> tuple[int | None, int | None]:
        """Processes and threads of a placed root, and how many it may have; None where that cannot be told, or there is
        no limit."""
        row = self._rows.get(cgroup)
        return (row.value(FilePart.PIDS), row.value(FilePart.PIDS_LIMIT) or None) if row else (None, None)

    def close(self) -> None:
        self.place({})

    def _add(self, cgroup: str, role: Role) -> None:
        """Into the turn with the fewest rows, so that no pass of a round is a spike."""
        turn = min(range(len(self._turns)), key=lambda number: len(self._turns[number]))
        row = self._rows[cgroup] = _Row(cgroup, role, turn, self._kinds)
        self._turns[turn].append(row)
        self._fresh.append(row)
        self._regroup_due = True

    def _look_again(self, rows: Iterable[_Row]) -> None:
        """v1 makes the hierarchies of a cgroup one after the other, so a young one's absent files may be there now."""
        for row in rows:
            if row.looks:
                row.looks -= 1
                self._presume(row)

    def _presume(self, row: _Row) -> None:
        """Count every file of the row as there until it was asked for."""
        for file in row.files.values():
            self._regroup_due |= file.absent
            file.absent = False

    def _regroup(self) -> None:
        """Sort the files into the lists that a pass walks along; a file that does not exist is in none."""
        self._regroup_due = False
        self._every = {kind.part: [] for kind in self._kinds}
        self._slow = [{kind.part: [] for kind in self._kinds} for _ in self._turns]
        for row in self._rows.values():
            for part, file in row.files.items():
                if file.absent:
                    continue
                if file.cadence is Cadence.EVERY_PASS:
                    self._every[part].append(file)
                    continue
                self._slow[row.turn][part].append(file)
                if file.cadence is Cadence.TWICE_A_ROUND:
                    self._slow[row.turn - len(self._turns) // 2][part].append(file)
        self._roots = [row for row in self._rows.values() if row.role is Role.ROOT]
        self._levelled = [row for row in self._rows.values() if row.memory.cadence is Cadence.WHEN_MOVED]

    def _due(self, part: FilePart, turn: int, fresh: Sequence[_Row], watched: Watched) -> Iterable[_File]:
        """What this pass reads beyond what every pass does; each file once."""
        closely = [self._rows[cgroup] for cgroup in watched.of(part) if cgroup in self._rows]
        wanted = (*fresh, *closely)
        new = (file for row in wanted if (file := row.files.get(part)) and file.cadence is not Cadence.EVERY_PASS)
        due = dict.fromkeys(self._slow[turn][part])
        due.update((file, None) for file in new)
        if part is FilePart.MEMORY:
            due.update((row.memory, None) for row in self._levelled if row.moved())
            for row in (file.row for file in due):
                row.level_then = (row.level.value or 0) if row.level else 0
        return due

    def _sweep(self, kind: FileKind, files: Iterable[_File]) -> None:
        """Read one kind of file of many cgroups: the innermost loop; only errors leave it."""
        pread, parse, size = self._pread, kind.parse, kind.size
        for file in files:
            try:
                text = pread(file.descriptor, size, 0)
                if text != file.text:
                    file.value = parse(text)
                    file.text = text
                    file.row.changed = True
            except (OSError, ValueError) as error:
                self._recover(file, error)

    def _recover(self, file: _File, error: OSError | ValueError) -> None:
        """Open what is not open yet; whatever fails even so becomes an absence."""
        if file.row.gone or file.absent:
            return
        file.row.changed = True
        if file.descriptor == _CLOSED:
            try:
                text = self._first_read(file)
                file.value = file.kind.parse(text)
                file.text = text
                return
            except (OSError, ValueError) as failure:
                error = failure
        needed = file.kind.part in NEEDED
        code = error.errno if isinstance(error, OSError) else None
        file.text = None
        if file.kind.part not in HELD or code in (*_NO_SUCH, errno.EOPNOTSUPP):
            file.value = None
        if code == errno.ENODEV or (needed and code in _NO_SUCH):
            self._lose(file.row)
        elif not needed and code in (*_NO_SUCH, errno.EOPNOTSUPP):
            file.absent = self._regroup_due = True
            self._close(file)
        else:
            self._complain(file, error)

    def _first_read(self, file: _File) -> bytes:
        """Open and read; the descriptor stays open while there are enough of them."""
        descriptor = self._opened(file)
        try:
            text = self._pread(descriptor, file.kind.size, 0)
        except OSError:
            os.close(descriptor)
            raise
        if self.open_descriptors < self._budget:
            file.descriptor = descriptor
            self.open_descriptors += 1
        else:
            os.close(descriptor)
            self._say_short()
        return text

    def _opened(self, file: _File) -> int:
        kind, cgroup = file.kind, file.row.cgroup
        try:
            return os.open(self._path(cgroup, kind, kind.file), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if not kind.leaf_file or file.row.role is not Role.CONTAINER:
                raise
            return os.open(self._path(cgroup, kind, kind.leaf_file), os.O_RDONLY | os.O_CLOEXEC)

    def _lose(self, row: _Row) -> None:
        """The cgroup is gone; the next pass looks whether there is a new one of its name."""
        row.gone = _gone(row.cgroup)
        self._drop(row)
        self._fresh.append(row)

    def _drop(self, row: _Row) -> None:
        row.looks = _LOOKS
        self._presume(row)
        for file in row.files.values():
            self._close(file)
            file.value = file.text = None
        row.changed = True

    def _close(self, file: _File) -> None:
        if file.descriptor != _CLOSED:
            os.close(file.descriptor)
            file.descriptor = _CLOSED
            self.open_descriptors -= 1

    def _complain(self, file: _File, error: OSError | ValueError) -> None:
        """Once a file; it is read again at its next turn."""
        path = self._path(file.row.cgroup, file.kind, file.kind.file)
        detail = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        if file.fault is None:
            log.error("control file unreadable", path=path, error=detail, effect="counted as not measured")
        file.fault = Missing(path, Absence.UNREADABLE, detail)
        if isinstance(error, OSError):
            self._close(file)

    def _say_short(self) -> None:
        if not self._short:
            self._short = True
            log.warning(
                "too few file descriptors to keep every control file open",
                open=self.open_descriptors,
                effect="the rest is opened for each reading, at five times the cost",
                fix="raise the limit of open files (ulimit -n, LimitNOFILE)",
            )

    def _path(self, cgroup: str, kind: FileKind, name: str) -> str:
        mount = f"{self._root}/{kind.controller}" if kind.controller else self._root
        return f"{mount}{cgroup}/{name}"


def _gone(cgroup: str) -> Missing:
    return Missing(cgroup, Absence.GONE, "no such cgroup")


def _descriptor_budget() -> int:
    """Raise the soft limit to the hard one; what may stay open leaves some for everything else."""
    soft, hard = (
        _MOST_DESCRIPTORS if limit == resource.RLIM_INFINITY else limit
        for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            soft = hard
    return soft - _SPARE_DESCRIPTORS
