"""One agent a node: a lock on a file named after the best-effort root, since another agent may have another state file.

The file lies in a folder that depends on nothing but the user, so that all agents of a node look at the same one. Its
name is the root's identity in the kernel, which is the same through every mount and in every container.
"""

from __future__ import annotations

import os
import stat
from enum import StrEnum
from pathlib import Path

from agent.core.observe.layout import Layout
from agent.files.lockfile import LockFile, LockHeld
from model.fault import ConfigurationFault, KernelFault

_ROOTS = Path("/run/sublet")
_SESSIONS = Path("/run/user")
_SHARED = Path("/tmp")
_OTHERS_WRITE = 0o022


class LockRole(StrEnum):
    """The program that limits best effort: the agent, or its guard, which may run beside it."""

    AGENT = "agent"
    GUARD = "guard"


class NodeLock:
    """Held until `close` or the process's end. A root that is made again meanwhile is not locked.

    Raises ConfigurationFault where another one limits the same cgroups or the lock cannot be kept, KernelFault where
    the root cannot be read.
    """

    def __init__(self, root: Path, who: LockRole = LockRole.AGENT, folder: Path | None = None) -> None:
        file = _own(folder or lock_folder()) / _name(root, who)
        try:
            self._lock = LockFile(file)
        except LockHeld as held:
            what = f"another {who} limits these cgroups{held.by}"
            raise ConfigurationFault(str(root), what, "stop it first") from held
        except OSError as error:
            fix = "remove the file; another user could keep agents from starting by it"
            raise ConfigurationFault(str(file), f"cannot be locked: {error.strerror}", fix) from error

    def close(self) -> None:
        self._lock.close()


def best_effort_folder(mount: Path, layout: Layout) -> Path:
    """The directory of the best-effort root; on v1 the CPU controller's."""
    return mount / ("" if layout.version == 2 else "cpu") / layout.best_effort.lstrip("/")


def lock_folder() -> Path:
    """Root's is the node's; another user has simulated cgroups of its own alone."""
    user = os.geteuid()
    if user == 0:
        return _ROOTS
    session = _SESSIONS / str(user)
    return session / "sublet" if session.is_dir() else _SHARED / f"sublet-{user}"


def _name(root: Path, who: LockRole) -> str:
    try:
        found = root.stat()
    except OSError as error:
        raise KernelFault(str(root), f"cannot be opened: {error.strerror}", "is kubelet running here?") from error
    return f"{who}-{root.name}-{found.st_dev:x}-{found.st_ino:x}.lock"


def _own(folder: Path) -> Path:
    """The folder, made where it is missing: ours, and nobody else may make or remove files in it."""
    fix = "the agent keeps its lock there: give it a folder of its own that no other user can write to"
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ConfigurationFault(str(folder), f"cannot be made: {error.strerror}", fix) from error
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigurationFault(str(folder), "is no directory", fix)
    if found.st_uid != os.geteuid():
        raise ConfigurationFault(str(folder), f"belongs to user {found.st_uid}", fix)
    if found.st_mode & _OTHERS_WRITE:
        raise ConfigurationFault(str(folder), f"other users may write to it ({stat.S_IMODE(found.st_mode):04o})", fix)
    return folder
