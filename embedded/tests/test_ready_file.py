"""Whoever sees the file may read it."""

from __future__ import annotations

import json
from pathlib import Path

from embedded.ready_file import write_ready_file


def test_the_file_is_replaced_whole(tmp_path: Path) -> None:
    """Nothing else stays beside it."""
    path = tmp_path / "node.ready"
    for port in (1, 2):
        write_ready_file(path, {"port": port})
    assert json.loads(path.read_text()) == {"port": 2}
    assert list(tmp_path.iterdir()) == [path]
