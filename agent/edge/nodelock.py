"""One agent a node: a lock on the best-effort root itself, since a second agent may have another state file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from model.fault import ConfigurationFault, KernelFault


class NodeLock:
    """Held on a cgroup's directory until `close` or the process's end; one that is made anew meanwhile is not locked.

    Raises ConfigurationFault where another agent has it, KernelFault where the directory cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise KernelFault(str(folder), f"cannot be opened: {error.strerror}", "is kubelet running here?") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise ConfigurationFault(str(folder), "another agent limits these cgroups", "stop it first") from error

    def close(self) -> None:
        os.close(self._descriptor)
