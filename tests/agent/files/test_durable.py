"""Either the old file or the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.files.durable import replace_file


def test_the_new_content_stands_alone(tmp_path: Path) -> None:
    """Nothing is left beside it, and only its owner may read it."""
    path = tmp_path / "state.json"
    replace_file(path, b"old, and longer")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_what_cannot_be_written_leaves_the_old(tmp_path: Path) -> None:
    """Here something is in the way of the new file."""
    path = tmp_path / "state.json"
    replace_file(path, b"old")
    (tmp_path / "state.json.new").mkdir()
    with pytest.raises(OSError):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
