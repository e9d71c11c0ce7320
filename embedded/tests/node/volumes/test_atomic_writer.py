"""Files of a volume change all at once, by one link."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from embedded.node.volumes.atomic_writer import File, write


def file(path: str, content: str, mode: int = 0o644, owner: int | None = None) -> File:
    return File(PurePosixPath(path), content.encode(), mode, owner)


def shown(directory: Path) -> dict[str, str]:
    """As a reader finds them."""
    found = (each for each in directory.rglob("*") if each.is_file())
    names = {str(each.relative_to(directory)): each.read_text() for each in found}
    through = {f"sub/{each.name}": each.read_text() for each in directory.glob("sub/*")}
    return {name: text for name, text in (names | through).items() if not name.startswith("..")}


def test_changes(tmp_path: Path) -> None:
    """New content, new names, names that go; nothing stays of what was."""
    assert write(tmp_path, [file("a", "1"), file("sub/b", "2")])
    before = (tmp_path / "..data").readlink()
    assert shown(tmp_path) == {"a": "1", "sub/b": "2"}
    assert (tmp_path / "a").readlink() == Path("..data/a")
    assert write(tmp_path, [file("a", "9"), file("c", "3")])
    assert shown(tmp_path) == {"a": "9", "c": "3"}
    assert (tmp_path / "..data").readlink() != before and not (tmp_path / before).exists()
    assert sorted(each.name for each in tmp_path.iterdir() if not each.name.startswith("..")) == ["a", "c"]


def test_nothing_new(tmp_path: Path) -> None:
    """The same files are not written again."""
    write(tmp_path, [file("a", "1")])
    before = (tmp_path / "..data").readlink()
    assert not write(tmp_path, [file("a", "1")])
    assert (tmp_path / "..data").readlink() == before


def test_empty(tmp_path: Path) -> None:
    """A volume of an optional object that is not there holds nothing, and later something."""
    assert write(tmp_path, [])
    assert not write(tmp_path, [])
    assert write(tmp_path, [file("a", "1")]) and shown(tmp_path) == {"a": "1"}


def test_a_sub_path_is_not_followed(tmp_path: Path) -> None:
    """Who holds an old file goes on reading it, as a subPath mount does."""
    write(tmp_path, [file("a", "1")])
    with (tmp_path / "a").open() as held:
        write(tmp_path, [file("a", "2")])
        assert held.read() == "1"


def test_in_each_others_way(tmp_path: Path) -> None:
    """What cannot be written leaves the files as they were, and no rest; the error names the path in the volume."""
    write(tmp_path, [file("a", "1")])
    with pytest.raises(OSError) as refused:
        write(tmp_path, [file("x", "1"), file("x/y", "2")])
    assert refused.value.filename == "x/y"
    assert shown(tmp_path) == {"a": "1"} and len([e for e in tmp_path.iterdir() if e.name.startswith("..2")]) == 1


def test_owners(tmp_path: Path) -> None:
    """A group reads what the owner reads, and passes through the directories; a token's owner is its user."""
    if os.geteuid() != 0:
        pytest.skip("run as root")
    write(tmp_path, [file("token", "t", 0o600, owner=1000), file("sub/x", "x", 0o400)], group=2000)
    token, other, directory = ((tmp_path / name).stat() for name in ("token", "sub/x", "sub"))
    assert (token.st_uid, token.st_gid, token.st_mode & 0o7777) == (1000, 2000, 0o640)
    assert (other.st_uid, other.st_gid, other.st_mode & 0o7777) == (0, 2000, 0o440)
    assert (directory.st_gid, directory.st_mode & 0o7777) == (2000, 0o2755)
