"""A directory that holds the state of one server: its lock, its database, and room kept back for a full disk.

StateError: the directory cannot be used; the message is for the person who named it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from embedded.fault import ConfigurationFault
from embedded.own_files import check_own, close_directory, open_own, own_directory

FORMAT = 1
ROOM_BYTES = 8 << 20
_APPLICATION = 0x5B1E7  # marks the file as ours
_LOCK, _DATABASE, _ROOM = "lock", "state.sqlite", "room-for-a-full-disk"
_BESIDE = ("-wal", "-shm", "-journal")
KEY = "service-account.key"
_OURS = frozenset({_LOCK, _DATABASE, _ROOM, KEY, *(_DATABASE + suffix for suffix in _BESIDE)})
_SCHEMA = f"""
BEGIN;
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE objects (
  type TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (type, namespace, name)
);
INSERT INTO meta (key, value) VALUES ('reserved', 0);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_PUT = (
    "INSERT INTO objects (type, namespace, name, body) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (type, namespace, name) DO UPDATE SET body = excluded.body"
)
_DROP = "DELETE FROM objects WHERE type = ? AND namespace = ? AND name = ?"
Row = tuple[str, str, str]  # type, namespace, name


class StateError(ValueError):
    """The state directory cannot be used; the message says why."""


class StateDirectory:
    """An open state directory, which nobody else can open meanwhile. Raises StateError."""

    def __init__(self, path: Path, room_bytes: int = ROOM_BYTES) -> None:
        self._path = path
        self._room, self._room_bytes = path / _ROOM, room_bytes
        self._lock = _locked(path)
        try:
            self._database = _opened(path / _DATABASE)
            self.reserved = int(self._database.execute("SELECT value FROM meta WHERE key = 'reserved'").fetchone()[0])
            self.keep_room()
        except (sqlite3.Error, OSError, TypeError) as error:
            self._lock.close()
            raise StateError(f"--state-dir {path}: state.sqlite cannot be used: {error}") from None
        except (StateError, ConfigurationFault) as error:
            self._lock.close()
            raise StateError(_told(error)) from None

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """(type, encoded object) of everything stored, in the order of their first writing."""
        try:
            yield from self._database.execute("SELECT type, body FROM objects ORDER BY rowid")
        except sqlite3.Error as error:
            raise StateError(f"--state-dir {self._path}: state.sqlite cannot be read: {error}") from None

    def reserve(self, revision: int) -> None:
        """Make the next run start above this revision; holds through a loss of power."""
        try:
            self._database.execute("PRAGMA synchronous = FULL")
            self.commit({}, revision)
            self._database.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error as error:
            raise StateError(f"--state-dir {self._path}: state.sqlite cannot be written: {error}") from None

    def commit(self, changes: Mapping[Row, bytes | None], reserved: int) -> None:
        """All of the changes (None: the object is gone) or, where sqlite3.Error is raised, none of them."""
        kept = [(*row, body) for row, body in changes.items() if body is not None]
        gone = [row for row, body in changes.items() if body is None]
        with self._database:
            self._database.executemany(_PUT, kept)
            self._database.executemany(_DROP, gone)
            if reserved > self.reserved:
                self._database.execute("UPDATE meta SET value = ? WHERE key = 'reserved'", (reserved,))
        self.reserved = max(self.reserved, reserved)

    def keep_room(self) -> None:
        """Keep back enough of the disk to commit what was accepted before it filled; raises OSError."""
        self._room.unlink(missing_ok=True)
        with os.fdopen(os.open(self._room, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, self._room_bytes)

    def give_room(self) -> None:
        self._room.unlink(missing_ok=True)

    def close(self) -> None:
        self._database.close()
        with contextlib.suppress(OSError):  # a file system that is read-only by now keeps it, for the next run to use
            self._room.unlink(missing_ok=True)
        self._lock.close()


def _make(path: Path) -> None:
    """A directory that nobody else may write to. Raises ConfigurationFault and OSError."""
    fix = "give --state-dir a directory of your own"
    if own_directory(path, fix) & 0o022:
        strangers = [entry.name for entry in path.iterdir() if entry.name not in _OURS]
        close_directory(path, strangers, "others may write to it", fix)


def _told(error: Exception) -> str:
    """Who named the directory is told by which flag."""
    return f"--state-dir {error}" if isinstance(error, ConfigurationFault) else str(error)


def _locked(path: Path) -> TextIO:
    try:
        _make(path)
        lock = os.fdopen(open_own(path / _LOCK, os.O_RDWR | os.O_CREAT), "r+")
    except ConfigurationFault as fault:
        raise StateError(_told(fault)) from None
    except (FileExistsError, NotADirectoryError):
        raise StateError(f"--state-dir {path}: is not a directory") from None
    except OSError as error:
        raise StateError(f"--state-dir {path}: {error}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise StateError(f"--state-dir {path}: in use by {holder}; one directory serves one server") from None
    lock.truncate()
    lock.write(f"process {os.getpid()}\n")
    lock.flush()
    return lock


def _opened(path: Path) -> sqlite3.Connection:
    """The database, made when absent; secrets lie in it, so its owner alone may read it."""
    os.close(open_own(path, os.O_RDWR | os.O_CREAT))
    for suffix in _BESIDE:  # SQLite opens these by their names
        check_own(path.with_name(path.name + suffix))
    database = sqlite3.connect(path, check_same_thread=False)
    try:
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            database.executescript(_SCHEMA)
        _check(path, database)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database


def _check(path: Path, database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise StateError(f"--state-dir {path.parent}: {path.name} is a database of another program")
    if (found := database.execute("PRAGMA user_version").fetchone()[0]) != FORMAT:
        raise StateError(f"--state-dir {path.parent}: {path.name} has format {found}; this program reads {FORMAT}")
    if (verdict := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise StateError(f"--state-dir {path.parent}: {path.name} is damaged: {verdict}")
