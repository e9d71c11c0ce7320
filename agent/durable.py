"""A file that is either the old one or the new one, whenever the power fails."""

from __future__ import annotations

import os
from pathlib import Path

from kube.wholefile import create_file


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
