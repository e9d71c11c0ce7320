"""A tree is walked however deep it is, and whatever vanishes meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from agent.files.folders import folders, reachable_folders


def test_deeper_than_calls_may_nest(tmp_path: Path) -> None:
    """A pod may nest its cgroups so deep, and neither the brake nor the last resort may end by that."""
    deep = [str(tmp_path)]
    try:
        for _ in range(sys.getrecursionlimit() + 100):
            deep.append(f"{deep[-1]}/a")
            Path(deep[-1]).mkdir()
        assert list(folders(str(tmp_path))) == deep
    finally:
        # Who removes a test's files calls itself for each level, too.
        for folder in reversed(deep[1:]):
            Path(folder).rmdir()


def test_no_more_than_are_wanted(tmp_path: Path) -> None:
    """Those near the top first, however many there are in one folder."""
    for name in ("a/deep/deeper", "b", "c"):
        (tmp_path / name).mkdir(parents=True)
    names = [folder.removeprefix(f"{tmp_path}") for folder in folders(str(tmp_path))]
    assert names[0] == "" and set(names[1:4]) == {"/a", "/b", "/c"} and names[4:] == ["/a/deep", "/a/deep/deeper"]
    for most in range(1, 9):
        assert list(folders(str(tmp_path), most)) == list(folders(str(tmp_path)))[:most]


def open_now() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_deeper_than_a_path_may_be_long(tmp_path: Path) -> None:
    """Each can be opened, and what it is called is told; of what was opened nothing stays open."""
    name, depth = "d" * 200, 40
    down = [os.open(tmp_path, os.O_RDONLY)]
    try:
        for _ in range(depth):
            os.mkdir(name, dir_fd=down[-1])
            down.append(os.open(name, os.O_RDONLY, dir_fd=down[-1]))
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=down[-1]))
        before = open_now()
        with reachable_folders(str(tmp_path)) as found:
            assert [folder.below for folder in found] == [f"/{name}" * number for number in range(depth + 1)]
            assert Path(found[-1].path, "file").is_file() and len(found[-1].path) < 4096
        assert open_now() == before
        with reachable_folders(str(tmp_path), 7) as found:
            assert len(found) == 7
        for number in range(100):
            os.mkdir(f"w{number}", dir_fd=down[-2])
        with reachable_folders(str(tmp_path)) as found:
            assert len(found) == depth + 101 and open_now() < before + 20, "one for a folder, not for each below it"
            assert all(Path(folder.path).is_dir() for folder in found)
    finally:
        for descriptor in down:
            os.close(descriptor)
        subprocess.run(["rm", "-rf", str(tmp_path / name)], check=True)


def test_what_is_no_folder_or_gone(tmp_path: Path) -> None:
    (tmp_path / "b/c").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    walk = folders(str(tmp_path))
    assert [next(walk), next(walk)] == [str(tmp_path), str(tmp_path / "b")]
    (tmp_path / "b/c").rmdir()
    assert list(walk) == []
    assert list(folders(str(tmp_path / "nowhere"))) == [str(tmp_path / "nowhere")]
