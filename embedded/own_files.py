"""Directories and files that are this user's own: no other user's link is followed and no other user's file is used.

A directory in a place that everybody may write to, such as /tmp, may be another user's, or hold what another user left
there: followed by root, a symbolic link named like one of our files would have any file of the machine replaced.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from embedded.fault import ConfigurationFault

_LINK = "a symbolic link, or another user's"


def own_directory(path: Path, fix: str) -> int:
    """The mode of a directory of this user's, made (0700) when absent. Raises ConfigurationFault and OSError."""
    _refuse_foreign_links(path, fix)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ConfigurationFault(str(path), _LINK, fix)
    return stat.S_IMODE(found.st_mode)


def close_directory(path: Path, strangers: Sequence[str], what: str, fix: str) -> None:
    """Keep others out. One with other things in it, such as /tmp, is not ours to close: raises ConfigurationFault."""
    if strangers:
        raise ConfigurationFault(str(path), what, fix)
    path.chmod(0o700)


def open_own(path: Path, flags: int) -> int:
    """A descriptor of a file of this user's, which nobody else may read when it is made here; never with O_TRUNC.

    Raises ConfigurationFault for a link, anything but a regular file, a file with a second name, and another user's;
    OSError for what the kernel refuses.
    """
    check_own(path)
    # Without waiting: it may have become a pipe since.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        _check(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_own(path: Path) -> None:
    """The same for a file that a library opens by its name, in a directory nobody else may write to; absent is good."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    _check(path, found)


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationFault(str(path), "a link or a special file, which is not followed", "remove it")
    if found.st_uid != os.geteuid():
        raise ConfigurationFault(str(path), "another user's file, which is not used", "remove it")
    if found.st_nlink > 1:
        raise ConfigurationFault(str(path), "a file that has another name besides, which is not used", "remove it")


def _refuse_foreign_links(path: Path, fix: str) -> None:
    """A link on the way to the directory leads where its owner wants: only root's and one's own are followed."""
    for parent in path.absolute().parents:
        if parent.is_symlink() and parent.lstat().st_uid not in (0, os.geteuid()):
            raise ConfigurationFault(str(path), f"{parent} is a symbolic link of another user", fix)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone may read, from its first byte on; an older file is replaced."""
    path.unlink(missing_ok=True)
    # O_EXCL with the mode: at no moment does the file exist with wider rights or under another's ownership.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def write_whole(path: Path, content: bytes, draft: Path) -> None:
    """Whole or not at all, written as `draft` in the same folder first; what has that name goes, and is not followed.

    Raises OSError.
    """
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as file:
        file.write(content)
    draft.replace(path)
