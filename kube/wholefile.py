"""A new file in the place of an old one, in a folder that may be another user's."""

from __future__ import annotations

import os
from pathlib import Path

_EVERYBODY_READS = 0o644


def create_file(path: Path, mode: int) -> int:
    """A descriptor of a file made here: what has its name goes first, so nobody's link or pipe is opened.

    Raises OSError.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def write_whole(path: Path, content: bytes, draft: Path) -> None:
    """Whole or not at all, written as `draft` in the same folder first. Raises OSError."""
    with os.fdopen(create_file(draft, _EVERYBODY_READS), "wb") as file:
        file.write(content)
    draft.replace(path)
