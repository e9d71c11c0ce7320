"""A lock that only its owner can take."""

from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.files.lockfile import LockFile, LockHeld

NOBODY = 65_534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user: run as root")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "it.lock"


def test_one_holder(path: Path) -> None:
    """A second one is told who has it, until the first is gone; then the file is gone, too."""
    first = LockFile(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(LockHeld) as held:
        LockFile(path)
    assert held.value.by.startswith(f": process {os.getpid()} ") and "python" in held.value.holder
    first.close()
    assert not path.exists()
    LockFile(path).close()


def test_closed_twice(path: Path) -> None:
    """The second time neither the file nor the number of the next holder is touched."""
    first = LockFile(path)
    first.close()
    second = LockFile(path)
    first.close()
    with pytest.raises(LockHeld):
        LockFile(path)
    second.close()


def test_the_end_of_a_process_ends_its_lock(path: Path) -> None:
    """Also where it leaves the file behind; what it said of itself is not said of the next holder."""
    what = "import os, sys, pathlib; from agent.files.lockfile import LockFile"
    code = f"{what}; LockFile(pathlib.Path(sys.argv[1])); os._exit(0)"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    assert "os._exit" in path.read_text()
    lock = LockFile(path)
    assert path.read_text().startswith(f"{os.getpid()} ") and "os._exit" not in path.read_text()
    lock.close()


@contextmanager
def full_disk() -> Iterator[None]:
    """No file takes a byte more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_without_room(path: Path) -> None:
    """It locks all the same: an agent or guard that starts again there must still limit. Who holds it is not told."""
    with full_disk():
        lock = LockFile(path)
    with pytest.raises(LockHeld) as held:
        LockFile(path)
    assert held.value.by == ""
    lock.close()


def test_a_file_that_its_holder_removes_meanwhile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opened it before is not content with a lock on a file that has no name any more."""
    first, real = LockFile(path), fcntl.flock

    def leave_first(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        first.close()
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", leave_first)
    second = LockFile(path)
    with pytest.raises(LockHeld):
        LockFile(path)
    second.close()


def _link(path: Path) -> None:
    path.with_name("victim").write_text("untouched")
    path.symlink_to(path.with_name("victim"))


def _open_to_all(path: Path) -> None:
    path.touch()
    path.chmod(0o644)


def _foreign(path: Path) -> None:
    path.touch()
    path.chmod(0o600)
    os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize(
    ("plant", "told"),
    [
        pytest.param(_link, "symbolic links", id="a symbolic link"),
        pytest.param(os.mkfifo, "no regular file", id="a pipe"),
        pytest.param(Path.mkdir, "Is a directory", id="a directory"),
        pytest.param(_open_to_all, r"other users may open it \(mode 0644\)", id="open to all"),
        pytest.param(_foreign, "belongs to user 65534", id="another user's", marks=needs_root),
    ],
)
def test_what_somebody_planted(path: Path, plant: Callable[[Path], None], told: str) -> None:
    """It is neither locked nor written: the error says what it is."""
    plant(path)
    with pytest.raises(OSError, match=told):
        LockFile(path)
    victim = path.with_name("victim")
    assert not victim.exists() or victim.read_text() == "untouched"


@needs_root
def test_another_user_cannot_take_it(path: Path) -> None:
    """Nor keep it: the lock is there for its owner, whatever others try."""
    path.parent.chmod(0o755)
    lock = LockFile(path)
    code = f"import os; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); os.open({str(path)!r}, os.O_RDONLY)"
    refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "PermissionError" in refused.stderr
    lock.close()
