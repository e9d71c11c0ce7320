"""One agent a node, whatever its state file."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

import pytest

from agent.edge.nodelock import LockRole, NodeLock, lock_folder
from model.fault import ConfigurationFault, KernelFault


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "one/besteffort").mkdir(parents=True)
    return tmp_path / "one/besteffort"


def test_a_second_agent_refuses(tmp_path: Path, root: Path) -> None:
    """Until the first is gone, and it says who that is; another best-effort root, and the guard, are other matters."""
    (tmp_path / "other").mkdir()
    first = NodeLock(root)
    NodeLock(tmp_path / "other").close()
    guard = NodeLock(root, LockRole.GUARD)
    who = rf"process {os.getpid()} .*python.*"
    with pytest.raises(
        ConfigurationFault, match=rf"besteffort: another agent limits these cgroups: {who} \(stop it fi"
    ):
        NodeLock(root)
    with pytest.raises(ConfigurationFault, match=rf"another guard limits these cgroups: {who}"):
        NodeLock(root, LockRole.GUARD)
    for lock in (first, guard):
        lock.close()
    NodeLock(root).close()


def test_the_same_root_by_another_name(tmp_path: Path, root: Path) -> None:
    """A container sees the node's cgroups elsewhere; it is the same root."""
    (tmp_path / "host").symlink_to(tmp_path / "one")
    with (
        contextlib.closing(NodeLock(root)),
        pytest.raises(ConfigurationFault, match="host/besteffort: another agent limits these cgroups"),
    ):
        NodeLock(tmp_path / "host/besteffort")


def test_whoever_locks_the_directory_keeps_nobody_from_starting(root: Path) -> None:
    """Every user may open a cgroup's directory, and so lock it."""
    descriptor = os.open(root, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    NodeLock(root).close()
    os.close(descriptor)


def test_the_folder(tmp_path: Path, root: Path) -> None:
    """It is made where it is missing; nothing stays behind in it."""
    NodeLock(root, folder=tmp_path / "run/sublet").close()
    assert list((tmp_path / "run/sublet").iterdir()) == []
    assert lock_folder() == Path("/run/sublet") or os.geteuid() != 0


FOLDERS = {
    "a link": (lambda folder: folder.symlink_to("/"), "is no directory"),
    "a file": (Path.touch, "cannot be made: File exists"),
    "open to others": (lambda folder: folder.mkdir() or folder.chmod(0o1777), r"other users may write to it \(1777\)"),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_that_others_prepared(tmp_path: Path, root: Path, case: str) -> None:
    """The agent says what is wrong with it rather than lock where others can remove the lock."""
    prepare, told = FOLDERS[case]
    prepare(tmp_path / "run")  # type: ignore[no-untyped-call]
    with pytest.raises(ConfigurationFault, match=rf"/run: {told}"):
        NodeLock(root, folder=tmp_path / "run")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away: run as root")
def test_a_folder_of_another_user(tmp_path: Path, root: Path) -> None:
    """Whoever owns it could remove the lock."""
    (tmp_path / "run").mkdir()
    os.chown(tmp_path / "run", 65_534, 65_534)
    with pytest.raises(ConfigurationFault, match="/run: belongs to user 65534"):
        NodeLock(root, folder=tmp_path / "run")


def test_a_root_that_does_not_exist(tmp_path: Path) -> None:
    """One line that names it."""
    with pytest.raises(KernelFault, match=r"/none: cannot be opened: No such file"):
        NodeLock(tmp_path / "none")
