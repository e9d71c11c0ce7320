"""An atomically replaced file: either the old one or the new one, whenever the power fails."""

from __future__ import annotations

import os
from pathlib import Path


def create_file(path: Path, mode: int) -> int:
    """A descriptor of a file made here: what has its name goes first, so nobody's link or pipe is opened.

    Raises OSError.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def replace_file(path: Path, content: bytes) -> None:
    """Readable by root alone; on the disk when this returns. Raises OSError, and then the old file stands."""
    fresh = path.with_name(f"{path.name}.new")
    with os.fdopen(create_file(fresh, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
