"""The file by which a program of the embedded cluster says that it serves, and where."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from embedded.own_files import write_whole


def write_ready_file(path: Path, facts: Mapping[str, object]) -> None:
    """Appears whole or not at all, so that whoever waits for it may read it at once. Raises OSError."""
    write_whole(path, msgspec.json.encode(facts), path.with_name(f".{path.name}.{os.getpid()}"))
