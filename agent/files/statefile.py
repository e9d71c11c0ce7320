"""The state file: what must survive a restart of the agent. Replaced atomically; one owner at a time.

It holds what each control file said before it was first written (the text itself: a number would lose the period of a
`cpu.max`), and which evictions were asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from agent.core.evict.eviction_request import EvictionRecord
from agent.core.observe.knobs import PIDS_FILE, text_of, value_of
from agent.core.observe.observation import Knob
from agent.files.durable import replace_file
from agent.files.lockfile import LockFile, LockHeld
from model.fault import ConfigurationFault

_VERSION = 3
_READABLE = (1, 2, 3)
_FIRST_FILES = frozenset(
    (
        "cpu.cfs_quota_us",
        "cpu.cfs_period_us",
        "cpu.max",
        "cpu.shares",
        "cpu.weight",
        "cpu.idle",
        "cpuset.cpus",
        "memory.limit_in_bytes",
        "memory.max",
        "memory.high",
    )
)


class _Original(msgspec.Struct, frozen=True):
    """`text` is what the file said; the first version of the state file kept but its number, as `value`."""

    knob: Knob
    text: str = ""
    value: int | None = None

    def told(self) -> str:
        """What to write back. Raises ValueError for what such a file never says, and for what is no file of ours."""
        for part in (self.knob.cgroup, self.knob.controller, self.knob.file):
            if ".." in part.split("/"):
                raise ValueError(f"{part!r} is no control file of ours")
        if not self.knob.cgroup or not self.knob.file:
            raise ValueError("an entry names no control file")
        text = self.text if self.value is None else text_of(self.knob, self.value)
        value_of(self.knob, text.encode())
        return text


class _State(msgspec.Struct, frozen=True):
    """`pids` and `more` are originals, too: apart, since agents up to 0.6, and up to 0.9, understand no such files, and
    go on without them."""

    version: int = _VERSION
    originals: list[_Original] = []
    pids: list[_Original] = []
    more: list[_Original] = []
    evictions: EvictionRecord = EvictionRecord()

    @classmethod
    def of(cls, texts: Mapping[Knob, str], evictions: EvictionRecord) -> _State:
        found = [_Original(knob, text) for knob, text in texts.items()]
        return cls(
            originals=[each for each in found if each.knob.file in _FIRST_FILES],
            pids=[each for each in found if each.knob.file == PIDS_FILE],
            more=[each for each in found if each.knob.file not in (*_FIRST_FILES, PIDS_FILE)],
            evictions=evictions,
        )


class StateFile:
    """Every method may be called from any thread; one that changes something is durable when it returns, `hold` and
    `drop` apart, which never wait for the disk.

    `problem` is why the newest save failed, empty where it did not.
    Raises ConfigurationFault where the file cannot be kept, belongs to another agent or cannot be understood.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_file = _locked(path)
        # Saves come one after the other, and a disk may never answer: what is known changes under a lock of its own.
        self._saving = threading.Lock()
        self._lock = threading.Lock()
        self.problem = ""
        self._texts, self._evictions = self._load()

    @property
    def originals(self) -> Mapping[Knob, str]:
        """What to write back, by knob; a picture of this moment."""
        return self._texts

    @property
    def evictions(self) -> EvictionRecord:
        return self._evictions

    def remember(self, texts: Mapping[Knob, str]) -> None:
        """Keep what these knobs say before they are written; the first word counts. Raises OSError, keeping nothing."""
        if all(knob in self._texts for knob in texts):
            return
        with self._saving:
            new = {knob: text for knob, text in texts.items() if knob not in self._texts}
            self._save({**new, **self._texts}, self._evictions)
            self.hold(new)

    def hold(self, texts: Mapping[Knob, str]) -> None:
        """Know these without the disk, where another file has them; the next that is saved has them, too."""
        with self._lock:
            self._texts = {**texts, **self._texts}

    def forget(self, knobs: Iterable[Knob]) -> None:
        """Their cgroups are gone. Raises OSError, forgetting nothing."""
        gone = set(knobs)
        with self._saving:
            self._save({knob: text for knob, text in self._texts.items() if knob not in gone}, self._evictions)
            self.drop(gone)

    def drop(self, knobs: Iterable[Knob]) -> None:
        """Their files say again what they said at first. Known no more from now on; the next save leaves them out."""
        given = set(knobs)
        with self._lock:
            self._texts = {knob: text for knob, text in self._texts.items() if knob not in given}

    def keep(self, evictions: EvictionRecord) -> None:
        """Raises OSError, and then the record before stands."""
        with self._saving:
            if evictions != self._evictions:
                self._save(self._texts, evictions)
                self._evictions = evictions

    def save_again(self) -> None:
        """What is known, to learn whether the disk takes it. Raises OSError."""
        with self._saving:
            self._save(self._texts, self._evictions)

    def remove(self) -> None:
        """Everything was put back."""
        with self._saving:
            with self._lock:
                self._texts, self._evictions = {}, EvictionRecord()
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another agent have it."""
        self._lock_file.close()

    def _load(self) -> tuple[dict[Knob, str], EvictionRecord]:
        try:
            return _parsed(self.path.read_bytes())
        except FileNotFoundError:
            return {}, EvictionRecord()
        except (OSError, ValueError, RecursionError) as error:
            self._lock_file.close()
            fix = "mend it or move it away; without it the original limits are unknown"
            raise ConfigurationFault(str(self.path), f"unreadable state file: {error}", fix) from error

    def _save(self, texts: Mapping[Knob, str], evictions: EvictionRecord) -> None:
        """Write the file, and nothing else."""
        state = _State.of(texts, evictions)
        try:
            replace_file(self.path, msgspec.json.format(msgspec.json.encode(state)))
        except OSError as error:
            self.problem = f"the state file cannot be written: {self.path}: {error.strerror or error}"
            raise
        self.problem = ""


def guard_file(state_file: Path) -> Path:
    """The guard's own state, beside the agent's."""
    return state_file.with_name("guard.json")


def originals_in(path: Path) -> Mapping[Knob, str]:
    """What another process's state file remembers now; nothing where it cannot be read."""
    try:
        return _parsed(path.read_bytes())[0]
    except (OSError, ValueError, RecursionError):
        return {}


def _parsed(content: bytes) -> tuple[dict[Knob, str], EvictionRecord]:
    state = msgspec.json.decode(content, type=_State)
    if state.version not in _READABLE:
        raise ValueError(f"version {state.version} is none of {_READABLE}")
    return {
        original.knob: original.told() for original in (*state.originals, *state.pids, *state.more)
    }, state.evictions


def _locked(path: Path) -> LockFile:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return LockFile(path.with_suffix(".lock"))
    except LockHeld as held:
        raise ConfigurationFault(str(path), f"another agent uses this state file{held.by}", "stop it first") from held
    except OSError as error:
        fix = "check --state-file; the agent needs root and a disk it can write to"
        raise ConfigurationFault(str(path), f"cannot be kept: {error.strerror}", fix) from error
