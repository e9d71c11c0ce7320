"""Files of a volume, written so that a reader sees all of the old ones or all of the new ones.

    <volume>/..2026_01_02_03_04_05.123456/<path>    the files
    <volume>/..data → ..2026_01_02_03_04_05.123456  swapped by one rename
    <volume>/<first part of path> → ..data/<first part of path>

Source: kubernetes pkg/volume/util/atomic_writer.go; owners and modes: pkg/volume/volume_linux.go (SetVolumeOwnership).
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import msgspec

_DATA, _NEW_DATA = "..data", "..data_tmp"


class File(msgspec.Struct, frozen=True):
    """One file of a written volume; `path` is relative to the volume, `owner` a user's number."""

    path: PurePosixPath
    content: bytes
    mode: int
    owner: int | None = None


def write(directory: Path, files: Sequence[File], group: int | None = None) -> bool:
    """Make these the volume's files, readable for `group`; False where they were already. Raises OSError."""
    wanted = {each.path: each for each in files}
    current = directory / _DATA
    if current.is_dir() and _held(current) == {path: each.content for path, each in wanted.items()}:
        return False
    made = Path(tempfile.mkdtemp(prefix=f"..{datetime.now(UTC):%Y_%m_%d_%H_%M_%S}.", dir=directory))
    try:
        _fill(made, wanted.values(), group)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        raise
    before = current.readlink() if current.is_symlink() else None
    (directory / _NEW_DATA).unlink(missing_ok=True)
    (directory / _NEW_DATA).symlink_to(made.name)
    (directory / _NEW_DATA).rename(current)
    _show(directory, {path.parts[0] for path in wanted})
    if before:
        shutil.rmtree(directory / before, ignore_errors=True)
    return True


def _held(current: Path) -> dict[PurePosixPath, bytes]:
    found = (path for path in current.rglob("*") if path.is_file())
    return {PurePosixPath(path.relative_to(current)): path.read_bytes() for path in found}


def _fill(made: Path, files: Iterable[File], group: int | None) -> None:
    made.chmod(0o755)
    for each in files:
        try:
            _write_one(made, each, group)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(each.path)) from None
    if group is not None:
        _give_directories(made, group)


def _write_one(made: Path, each: File, group: int | None) -> None:
    file = made / each.path
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    file.write_bytes(each.content)
    if group is not None or each.owner is not None:
        os.chown(file, each.owner if each.owner is not None else -1, group if group is not None else -1)
    # Read-only volumes: the group may read what the owner may.
    file.chmod(each.mode | (0o440 if group is not None else 0))


def _give_directories(made: Path, group: int) -> None:
    for path in (made, *made.rglob("*")):
        if path.is_dir():
            os.chown(path, -1, group)
            path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_ISGID | 0o550)


def _show(directory: Path, names: set[str]) -> None:
    for entry in directory.iterdir():
        if not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
    for name in sorted(names):
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"{_DATA}/{name}")
