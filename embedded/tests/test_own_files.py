"""Directories and files of one's own: what another user put there is neither followed nor used."""

import os
import stat
from pathlib import Path

import pytest

from embedded.fault import ConfigurationFault
from embedded.own_files import check_own, open_own, own_directory

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def a_link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def a_second_name(path: Path, target: Path) -> None:
    os.link(target, path)


def a_pipe(path: Path, target: Path) -> None:
    os.mkfifo(path)


def a_strangers_file(path: Path, target: Path) -> None:
    path.write_text("theirs")
    os.chown(path, NOBODY, NOBODY)


NOT_OWN = {
    "a link": (a_link, "not followed"),
    "a link to nothing": (lambda path, target: path.symlink_to(target.with_name("absent")), "not followed"),
    "a second name of another file": (a_second_name, "another name besides"),
    "a pipe": (a_pipe, "special file"),
    "a directory": (lambda path, target: path.mkdir(), "special file"),
    "another user's": (a_strangers_file, "another user's file"),
}


@pytest.mark.parametrize(("make", "message"), NOT_OWN.values(), ids=NOT_OWN)
def test_what_may_be_anothers_is_not_opened(tmp_path: Path, make, message: str) -> None:
    """Nor is a library told to open it; the file that it leads to stays as it was, and none is made."""
    if make is a_strangers_file and os.geteuid():
        pytest.skip("only root can give files to another user")
    target, path = tmp_path / "precious", tmp_path / "lock"
    target.write_text("precious")
    make(path, target)
    with pytest.raises(ConfigurationFault, match=message):
        open_own(path, os.O_WRONLY | os.O_CREAT)
    with pytest.raises(ConfigurationFault, match=message):
        check_own(path)
    assert target.read_text() == "precious"
    assert not (tmp_path / "absent").exists()


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """And opened again it is the same."""
    check_own(tmp_path / "new")
    for text in (b"one", b"two"):
        with os.fdopen(open_own(tmp_path / "new", os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as file:
            file.write(text)
    assert (tmp_path / "new").read_bytes() == b"onetwo"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_a_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Whoever owns the link could point it elsewhere between two looks."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(ConfigurationFault, match=r"a symbolic link, or another user.s \(give DIR\)"):
        own_directory(tmp_path / "link", "give DIR")


@needs_root
def test_a_strangers_link_on_the_way_is_refused(tmp_path: Path) -> None:
    """Nothing is made where it leads; a link of one's own is followed."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert own_directory(tmp_path / "link" / "own", "") == 0o700
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(ConfigurationFault, match="link is a symbolic link of another user"):
        own_directory(tmp_path / "link" / "more" / "state", "")
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["own"]
