"""Control files by knob: read as values, written in a way the kernel accepts, and read back."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent.core.limit.memory_steps import limit_above, step_towards
from agent.core.limit.steps import out_of_the_way, steps
from agent.core.observe.knobs import (
    OOM_SCORE_FILE,
    PERIOD_FILE,
    PERIOD_US,
    UNLIMITED,
    is_v1_cpuset,
    is_v1_quota,
    same,
    text_of,
    value_of,
)
from agent.core.observe.observation import Absence, Knob, Missing, Value
from agent.core.observe.parse import counter, v1_memory, v2_memory
from agent.files.folders import reachable_folders
from agent.files.oomscores import ProcessScores

GONE = (errno.ENOENT, errno.ENODEV)
_NO_ROOM = (errno.EINVAL, errno.EBUSY)
"""What cgroup v1 answers where a child holds more: of a quota, of a CPU list."""
_LONGEST_BYTES = 8192
_MOST_BELOW = 8192
"""A fifth of a second; 250 pods have some 1,000."""
_MEMORY_FILES = {
    "memory.max": ("memory.current", v2_memory),
    "memory.limit_in_bytes": ("memory.usage_in_bytes", v1_memory),
}
"""A limit's file, the file of what is charged, and who reads memory.stat."""


class NotKeptError(OSError):
    """The file took the value and held another one a moment later."""


class KnobText(msgspec.Struct, frozen=True):
    """What a control file says: the value, and the text it stands for."""

    value: Value
    text: str


class ControlFiles:
    """Files below `root`. Who writes one has remembered what it said before; for children of a knob that step aside
    `remember_below` does so before, durably, or raises OSError. `scores` are of the processes, in place of a file. No
    more than `most_below` cgroups step aside: a container may make hundreds of thousands below its own, and whoever
    waits for all of them does nothing else.
    """

    def __init__(
        self,
        root: Path,
        remember_below: Callable[[Knob, Mapping[Knob, str]], None],
        scores: ProcessScores | None = None,
        most_below: int = _MOST_BELOW,
    ) -> None:
        self._root = root
        self._most_below = most_below
        self._remember_below = remember_below
        self._scores = scores or ProcessScores()
        self._all_cpus: dict[Knob, str] = {}

    def path(self, knob: Knob) -> Path:
        return self._root / knob.controller / knob.cgroup.lstrip("/") / knob.file

    def held(self, knob: Knob) -> KnobText | Missing:
        """What the kernel holds now. Never raises."""
        return self._held(knob, self._path(knob))

    def _held(self, knob: Knob, path: str) -> KnobText | Missing:
        try:
            content = self._scores.read(path.rpartition("/")[0]) if knob.file == OOM_SCORE_FILE else _content(path)
            text = content.decode().strip()
            return KnobText("" if text and text == self._all_cpus.get(knob) else value_of(knob, content), text)
        except (OSError, ValueError) as error:
            gone = isinstance(error, OSError) and error.errno in GONE
            detail = "no such file" if gone else str(error)
            return Missing(path, Absence.GONE if gone else Absence.UNREADABLE, detail)

    def put(self, knob: Knob, value: Value) -> Value:
        """Write and read back; children that are in the way on cgroup v1 step aside. Returns what the kernel kept.

        Raises OSError where the file is gone, cannot be written or kept something else.
        """
        try:
            return self.put_alone(knob, value)
        except OSError as error:
            if error.errno in _NO_ROOM and self._make_room(knob, value):
                return self.put_alone(knob, value)
            if error.errno != errno.ENOSPC or value != "" or is_v1_cpuset(knob):
                raise
        self._put_all_cpus(knob)
        return self._kept(knob, value)

    def put_alone(self, knob: Knob, value: Value) -> Value:
        """As `put`, but nobody steps aside."""
        self.put_text(knob, text_of(knob, value))
        return self._kept(knob, value)

    def put_text(self, knob: Knob, text: str) -> None:
        """Raises OSError."""
        if knob.file == OOM_SCORE_FILE:
            self._scores.write(self._path(knob).rpartition("/")[0], text)
            return
        _put(self._path(knob), text)

    def least(self, knob: Knob, value: Value) -> Value:
        """The least memory limit from `value` up that the kernel neither kills for (v2) nor refuses (v1):
        little more than what is charged now and cannot be dropped, kernel memory such as pipes included.

        Never more than is in force already. `value` for any other file, and where it cannot be told.
        """
        files = _MEMORY_FILES.get(knob.file)
        if files is None or isinstance(value, str) or value == UNLIMITED:
            return value
        level, parse = files
        try:
            charged = counter(_content(self._path(replace(knob, file=level))))
            _, cache = parse(_content(self._path(replace(knob, file="memory.stat"))))
        except (OSError, ValueError):
            return value
        held = charged - cache
        return value if held <= value else self._above(knob, held, value)

    def fits(self, knob: Knob, value: Value) -> bool:
        """No more is charged than a memory limit that is to come, so that the kernel has it at once; False where that
        cannot be told."""
        files = _MEMORY_FILES.get(knob.file)
        if files is None or isinstance(value, str):
            return False
        try:
            return counter(_content(self._path(replace(knob, file=files[0])))) <= value
        except (OSError, ValueError):
            return False

    def hold(self, knob: Knob, value: Value) -> Value | None:
        """Where a memory limit cannot be had, the least above all that is charged; None where that is below the limit.

        Pages of files that a process keeps in pipes count as droppable and are not: v1 refuses every limit below them,
        and without one whoever holds them could grow on. Never more than is in force. Raises OSError, ValueError.
        """
        files = _MEMORY_FILES.get(knob.file)
        if files is None or isinstance(value, str) or value == UNLIMITED:
            return None
        charged = counter(_content(self._path(replace(knob, file=files[0]))))
        if charged <= value:
            return None
        now, least = self.held(knob), self._above(knob, charged, value)
        return least if isinstance(now, KnobText) and now.value == least else self.put_alone(knob, least)

    def _above(self, knob: Knob, held: int, value: int) -> int:
        now = self.held(knob)
        return limit_above(
            held, value, now.value if isinstance(now, KnobText) and isinstance(now.value, int) else UNLIMITED
        )

    def step_down(self, knob: Knob, value: Value) -> Value | None:
        """One step towards a memory limit below what the cgroup holds, and what the kernel kept of it; None where none
        is left but the last.

        v1 takes a limit only once less is held, and pages that are dirtied as fast as others are freed put that off for
        good; v2 has it at once and answers when less is held, which is up to the disk. What was freed below a limit
        that is in force stays free. Raises OSError.
        """
        files = _MEMORY_FILES.get(knob.file)
        if files is None or isinstance(value, str) or value == UNLIMITED:
            return None
        lower = step_towards(value, counter(_content(self._path(replace(knob, file=files[0])))))
        return None if lower is None else self.put_alone(knob, lower)

    def cgroup_is_gone(self, knob: Knob) -> bool:
        """Its directory was removed, and that is not because the whole tree is out of sight."""
        cgroup = knob.cgroup.lstrip("/")
        tree = self._root / knob.controller
        return (tree / cgroup.split("/", 1)[0]).is_dir() and not (tree / cgroup).is_dir()

    def _kept(self, knob: Knob, value: Value) -> Value:
        held = self.held(knob)
        if isinstance(held, Missing):
            raise OSError(errno.ENODEV if held.absence is Absence.GONE else errno.EIO, held.detail)
        if not same(knob, held.value, value):
            raise NotKeptError(errno.EIO, f"wrote {value}, the kernel holds {held.value}")
        return held.value

    def _put_all_cpus(self, knob: Knob) -> None:
        """A v2 cgroup with processes takes no empty list once it had another; all CPUs of its parent are the same."""
        parent = replace(knob, cgroup=knob.cgroup.rsplit("/", 1)[0], file="cpuset.cpus.effective")
        text = _content(self._path(parent)).decode().strip()
        self.put_text(knob, text)
        self._all_cpus[knob] = text

    def _make_room(self, knob: Knob, value: Value) -> bool:
        """True where a child was changed, so that the parent's write is worth another try."""
        if not is_v1_quota(knob) and not is_v1_cpuset(knob):
            return False
        with reachable_folders(str(self.path(knob).parent), self._most_below + 2) as found:
            if len(found) > self._most_below + 1:
                raise OSError(errno.E2BIG, f"more than {self._most_below} cgroups below it stand in the way")
            files = {replace(knob, cgroup=knob.cgroup + each.below): f"{each.path}/{knob.file}" for each in found[1:]}
            return self._stepped_aside(knob, value, files)

    def _stepped_aside(self, knob: Knob, value: Value, files: Mapping[Knob, str]) -> bool:
        """The children whose `files` these are; True where one was changed. Raises OSError."""
        below = {child: held for child, path in files.items() if isinstance(held := self._held(child, path), KnobText)}
        values = {child: _in_whole_periods(child, held.value, files[child]) for child, held in below.items()}
        moves = steps(out_of_the_way(knob, value, values), values)
        self._remember_below(knob, {step.knob: below[step.knob].text for step in moves})
        for step in moves:
            try:
                _put(files[step.knob], text_of(step.knob, step.value))
            except OSError as error:
                # A child that is gone is in nobody's way.
                if error.errno not in GONE:
                    raise
        return bool(moves)

    def _path(self, knob: Knob) -> str:
        tree = f"{self._root}/{knob.controller}" if knob.controller else str(self._root)
        return f"{tree}{knob.cgroup}/{knob.file}"


def _in_whole_periods(knob: Knob, value: Value, path: str) -> Value:
    """A v1 quota as one of our period: the kernel compares what both make of a CPU, and who is root in a container may
    write a shorter period below its own."""
    if not is_v1_quota(knob) or not isinstance(value, int) or value == UNLIMITED:
        return value
    try:
        period_us = counter(_content(f"{path.removesuffix(knob.file)}{PERIOD_FILE}"))
    except (OSError, ValueError):
        return value
    return max(-(-value * PERIOD_US // max(period_us, 1)), value) if period_us < PERIOD_US else value


def _put(path: str, text: str) -> None:
    """Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        # An empty CPU list is a line without anything; writing nothing at all changes nothing.
        os.write(descriptor, (text or "\n").encode())
    finally:
        os.close(descriptor)


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LONGEST_BYTES)
    finally:
        os.close(descriptor)
