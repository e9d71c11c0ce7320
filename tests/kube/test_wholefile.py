"""What a program writes under a name, and what had that name before."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.files.durable import replace_file
from agent.run.heartbeat_guard import Heartbeat
from agent.run.tasks import write_ready_file
from kube.wholefile import write_whole

WRITERS: dict[str, Callable[[Path], object]] = {
    "a file": lambda path: write_whole(path, b"{}", path.with_name("x.json.new")),
    "state file": lambda path: replace_file(path, b"{}"),
    "ready file": lambda path: write_ready_file(path, {}),
    "heartbeat": lambda path: Heartbeat(path).beat(),
}
"""Each writes x.json; drafts are x.new and x.json.new."""


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_what_another_user_left_under_a_name_is_replaced(
    tmp_path: Path, write: Callable[[Path], object], kind: str
) -> None:
    """Neither is a file behind a link written, nor does anybody wait for the other end of a pipe."""
    precious, folder = tmp_path / "precious", tmp_path / "folder"
    folder.mkdir()
    precious.write_text("kept")
    for draft in (folder / "x.new", folder / "x.json.new"):
        {"link": draft.symlink_to, "hard link": draft.hardlink_to, "pipe": lambda _, at=draft: os.mkfifo(at)}[kind](
            precious
        )
    write(folder / "x.json")
    assert precious.read_text() == "kept" and (folder / "x.json").lstat().st_nlink == 1
    assert (folder / "x.json").is_file() and not (folder / "x.json").is_symlink()
