"""Valid-by-default builders, and file systems that fail or stop when told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from sublet_sdk.checkpoints import Checkpoints
from sublet_sdk.manifest import JobKey
from sublet_sdk.retries import Retries
from sublet_sdk.settings import CheckpointSettings
from sublet_sdk.storage import Storage

JOB = JobKey("ml", "bert")
ONCE = Retries(attempts=1)


@dataclass
class Clock:
    """Unix nanoseconds; a second later each time it is asked."""

    now_ns: int = 1_800_000_000_000_000_000

    def __call__(self) -> int:
        self.now_ns += 1_000_000_000
        return self.now_ns


@dataclass
class Pauses:
    """A sleep that takes no time."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def settings(most: int = 0, interval_seconds: float = 0.0) -> CheckpointSettings:
    return CheckpointSettings("memory://unused", JOB, interval_seconds, most)


def memory() -> MemoryFileSystem:
    """A file system of its own: fsspec's are one store for the whole process."""
    made = MemoryFileSystem(skip_instance_cache=True)
    made.store, made.pseudo_dirs = {}, [""]
    return made


def checkpoints(
    files: Any | None = None, root: str = "/base", most: int = 0, clock: Callable[[], int] | None = None
) -> Checkpoints:
    return Checkpoints(settings(most), Storage(files or memory(), root, ONCE), clock or Clock())


class Stopped(BaseException):
    """The process ends here: no handler of the code under test sees it as a failure of the storage."""


class StoppingFiles(LocalFileSystem):
    """The local file system, whose process ends before, or in the midst of, its n-th change; counted from 1."""

    cachable = False

    def __init__(self, stop_at: int) -> None:
        super().__init__()
        self.stop_at, self.changes = stop_at, 0

    def change(self) -> None:
        self.changes += 1
        if self.changes == self.stop_at:
            raise Stopped

    def open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        if "w" not in mode:
            return super().open(path, mode, **more)
        self.change()
        return StoppingFile(self, super().open(path, mode, **more))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.change()
        super().makedirs(path, exist_ok=exist_ok)

    def mv(self, path1: str, path2: str, **more: Any) -> None:
        self.change()
        super().mv(path1, path2, **more)
        self.change()

    def rm_file(self, path: str) -> None:
        self.change()
        super().rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        self.change()
        super().rm(path, recursive=recursive, maxdepth=maxdepth)


class StoppingFile:
    """Writes half of a chunk where the process ends."""

    def __init__(self, files: StoppingFiles, file: Any) -> None:
        self._files, self._file = files, file

    def __enter__(self) -> StoppingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, chunk: bytes) -> None:
        try:
            self._files.change()
        except Stopped:
            self._file.write(chunk[: len(chunk) // 2])
            raise
        self._file.write(chunk)

    def flush(self) -> None:
        self._files.change()
        self._file.flush()

    def fileno(self) -> int:
        return int(self._file.fileno())


class FailingFiles(MemoryFileSystem):
    """The memory, whose calls named in `failures` fail so many times."""

    cachable = False  # each test has one of its own

    def __init__(self) -> None:
        super().__init__()
        self.store, self.pseudo_dirs = {}, [""]
        self.failures: dict[str, int] = {}

    def _may_fail(self, call: str) -> None:
        if self.failures.get(call, 0) > 0:
            self.failures[call] -= 1
            raise ConnectionResetError(f"{call}: reset by peer")

    def open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        self._may_fail("write" if "w" in mode else "read")
        return super().open(path, mode, **more)

    def ls(self, path: str, detail: bool = True, **more: Any) -> Any:
        self._may_fail("list")
        return super().ls(path, detail, **more)

    def rm_file(self, path: str) -> None:
        self._may_fail("delete")
        super().rm_file(path)


def spoil(files: MemoryFileSystem, checkpoint_id: str, file: str, content: bytes | None) -> None:
    """Puts other bytes in a file's place, or takes it away."""
    path = f"/base/{JOB.text}/{checkpoint_id}/{file}"
    files.rm_file(path)
    if content is not None:
        files.pipe_file(path, content)


def folder(path: Path) -> str:
    return str(path / "base")
