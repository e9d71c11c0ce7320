"""A new file in the place of an old one, in a folder that may be another user's."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes, draft: Path) -> None:
    """Whole or not at all, written as `draft` in the same folder first; what has that name goes, and is not followed.

    Raises OSError.
    """
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as file:
        file.write(content)
    draft.replace(path)
