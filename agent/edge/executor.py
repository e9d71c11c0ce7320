"""The single writer of control files: records originals first, writes, reads back, says what the kernel kept.

The tick and the brake both write through here, under one lock: a raise planned before a cut never lands after it.
What an agent before this one left behind counts as ours: the state file names the knob, the kernel holds another value.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from agent.core.knobs import text_of, value_of
from agent.core.observation import Absence, Knob, KnobReading, Missing
from agent.core.plan import Write, looser
from agent.durable import replace_file
from agent.ports import KnobReadings, WriteOutcome
from model.fault import ConfigurationFault, KernelFault

log = structlog.get_logger()

_VERSION = 2
_READABLE = (1, 2)


class _Original(msgspec.Struct, frozen=True):
    """`text` is what the file said; the first version of the state file kept but its number, as `value`."""

    knob: Knob
    text: str = ""
    value: int | None = None

    def told(self) -> str:
        """What to write back. Raises ValueError for what such a file never says."""
        text = self.text if self.value is None else text_of(self.knob, self.value)
        value_of(self.knob, text.encode())
        return text


class _State(msgspec.Struct, frozen=True):
    version: int = _VERSION
    originals: list[_Original] = []


def _refuse_strange(knob: Knob) -> None:
    """A path out of the cgroup tree is nothing we ever wrote."""
    for part in (knob.cgroup, knob.controller, knob.file):
        if ".." in part.split("/"):
            raise ValueError(f"{part!r} is no control file of ours")
    if not knob.cgroup or not knob.file:
        raise ValueError("an entry names no control file")


class Originals:
    """The state file: what each knob said before we first wrote it. Replaced atomically; one owner at a time.

    The text itself, since a number would lose the period of a `cpu.max`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            fix = "check --state-file; the agent needs root and a disk it can write to"
            raise ConfigurationFault(str(path), f"cannot be kept: {error.strerror}", fix) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationFault(str(path), "another agent uses this state file", "stop it first") from error
        self._texts = self._load()

    def remember(self, knob: Knob, text: str) -> None:
        """Durable before the first write, or an OSError; later calls change nothing."""
        if knob not in self._texts:
            grown = {**self._texts, knob: text}
            self._save(grown)
            self._texts = grown

    def all(self) -> dict[Knob, str]:
        return dict(self._texts)

    def clear(self) -> None:
        self._texts.clear()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        os.close(self._lock)

    def _load(self) -> dict[Knob, str]:
        try:
            state = msgspec.json.decode(self._path.read_bytes(), type=_State)
            if state.version not in _READABLE:
                raise ValueError(f"version {state.version} is none of {_READABLE}")
            for original in state.originals:
                _refuse_strange(original.knob)
            return {original.knob: original.told() for original in state.originals}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            fix = "mend it or move it away; without it the original limits are unknown"
            raise ConfigurationFault(str(self._path), f"unreadable state file: {error}", fix) from error

    def _save(self, texts: dict[Knob, str]) -> None:
        state = _State(originals=[_Original(knob, text) for knob, text in texts.items()])
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(state)))


class _Held(msgspec.Struct, frozen=True):
    """What a control file says now."""

    value: int
    text: str


class KnobExecutor:
    """Control files below `root`; `originals` learns what one said before it is first changed."""

    def __init__(self, root: Path, originals: Originals, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._originals = originals
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._inherited = originals.all()
        self._ours: dict[Knob, int] = {}
        self._cuts = 0
        self._last_cut: float | None = None
        self.failed_cuts = 0

    def path(self, knob: Knob) -> Path:
        return self._root / knob.controller / knob.cgroup.lstrip("/") / knob.file

    def read(self, knob: Knob) -> int | Missing:
        held = self._held(knob)
        return held if isinstance(held, Missing) else held.value

    def readings(self, knobs: tuple[Knob, ...]) -> KnobReadings:
        with self._lock:
            found = {knob: self._reading(knob) for knob in knobs}
            return KnobReadings(found, self._cuts, self._last_cut)

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        with self._lock:
            return tuple(self._apply_one(write, seen_cuts) for write in writes)

    def lower(self, knob: Knob, value: int) -> int | None:
        """For the brake: write `value` if that gives less than the kernel holds now; returns what it held."""
        with self._lock:
            held = self._held(knob)
            if isinstance(held, Missing) or not looser(held.value, value):
                return None
            if self._write(knob, value, held):
                self.failed_cuts += 1
                return None
            self._cuts += 1
            self._last_cut = self._monotonic()
            return held.value

    def restore(self) -> int:
        """Put every original back and forget them; returns how many knobs changed.

        Raises KernelFault, forgetting nothing, where the kernel refused one; the others are put back all the same.
        """
        restored, fault = 0, None
        with self._lock:
            for knob, text in self._originals.all().items():
                held = self._held(knob)
                if isinstance(held, Missing):
                    log.info("nothing to restore", path=held.path, detail=held.detail)
                    continue
                error = self._put_back(knob, text) if held.text != text else ""
                log.info("restored", path=str(self.path(knob)), was=held.text, now=text, error=error)
                restored += held.text != text and not error
                if error:
                    fault = KernelFault(str(self.path(knob)), f"{text} was refused: {error}", "mend it, restore again")
            if fault:
                raise fault
            self._originals.clear()
        return restored

    def _apply_one(self, write: Write, seen_cuts: int) -> WriteOutcome:
        held = self._held(write.knob)
        if isinstance(held, Missing):
            return WriteOutcome(write, f"{held.path}: {held.detail}")
        if seen_cuts != self._cuts and looser(write.value, held.value):
            return WriteOutcome(write, dropped=True)
        return WriteOutcome(write, self._write(write.knob, write.value, held))

    def _held(self, knob: Knob) -> _Held | Missing:
        path = self.path(knob)
        try:
            content = path.read_bytes()
            return _Held(value_of(knob, content), content.decode().strip())
        except FileNotFoundError:
            return Missing(str(path), Absence.GONE, "no such file")
        except (OSError, ValueError) as error:
            return Missing(str(path), Absence.UNREADABLE, str(error))

    def _reading(self, knob: Knob) -> KnobReading:
        held = self._held(knob)
        if isinstance(held, Missing):
            return KnobReading(held, self._ours.get(knob))
        if self._inherited.pop(knob, held.text) != held.text:
            self._ours.setdefault(knob, held.value)
        return KnobReading(held.value, self._ours.get(knob))

    def _write(self, knob: Knob, value: int, held: _Held) -> str:
        """Empty when the kernel kept the value, else what went wrong."""
        path = self.path(knob)
        try:
            self._originals.remember(knob, held.text)
            _overwrite(path, text_of(knob, value))
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        kept = self.read(knob)
        if kept != value:
            return f"{path}: wrote {value}, the kernel holds {kept}"
        self._ours[knob] = value
        return ""

    def _put_back(self, knob: Knob, text: str) -> str:
        """Empty when the kernel kept the original, else what went wrong."""
        try:
            _overwrite(self.path(knob), text)
        except OSError as error:
            return error.strerror or str(error)
        kept = self._held(knob)
        return "" if isinstance(kept, _Held) and kept.text == text else f"the kernel holds {kept}"


def _overwrite(path: Path, text: str) -> None:
    with path.open("wb", buffering=0) as file:
        file.write(text.encode())
