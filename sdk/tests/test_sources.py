"""Sources: bytes or paths under names of their own; what else is given is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sublet_sdk.faults import SettingFault
from sublet_sdk.sources import BytesKept, checked_sources, copied


def test_bytes_and_paths_are_opened_from_their_beginning(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"xyz")
    sources = checked_sources({"a": b"abc", "b": path, "c": memoryview(b"m")}, 0, 0)
    for _ in range(2):
        assert [each().read() for each in sources.values()] == [b"abc", b"xyz", b"m"]


def test_a_copy_is_not_changed_by_its_owner() -> None:
    state = bytearray(b"abc")
    copy = copied({"a": state})
    state[0] = 0
    assert copy["a"] == b"abc"


@pytest.mark.parametrize(
    ("files", "step", "epoch", "said"),
    [
        ({}, 0, 0, "files: is empty; give at least one file"),
        ({"a": "text"}, 0, 0, "file 'a': is str; give bytes, or a pathlib.Path"),
        ({"a": Path("/nowhere/x")}, 0, 0, "/nowhere/x is no file"),
        ({"../a": b""}, 0, 0, "give a relative path"),
        ({"a": b"", "a/b": b""}, 0, 0, "file .a/b.: lies below file .a.; give one of them another name"),
        ({"a": b""}, -1, 0, "step: is -1; give a whole number"),
        ({"a": b""}, True, 0, "step: is True"),
        ({"a": b""}, 0, 1.5, "epoch: is 1.5"),
    ],
)
def test_what_cannot_be_saved(files: Any, step: Any, epoch: Any, said: str) -> None:
    with pytest.raises(SettingFault, match=said):
        checked_sources(files, step, epoch)


def test_bytes_outlive_their_stream() -> None:
    kept = BytesKept()
    with kept.opened() as stream:
        stream.write(b"abc")
    stream.close()
    assert kept.bytes == b"abc"
