"""Sockets on which pods listen, in a volume of each pod's own: found, opened and proven to be that pod's.

    <kubelet>/pods/<uid>/volumes/kubernetes.io~empty-dir/sublet-socket/*.sock

The kubelet makes the folders, so the folder says whose the socket is. What is in the last one is the pod's, which may
be hostile: no link of it is followed, nothing but a socket is opened, and whoever listens must be a process of the pod.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Self

from agent.files.folders import reachable_folders

VOLUME = "sublet-socket"
_EMPTY_DIR = ("volumes", "kubernetes.io~empty-dir", VOLUME)
_SUFFIX = ".sock"
_MOST_ENTRIES = 64
"""Looked at in a pod's folder; whatever else it has there costs nobody else."""
_MOST_CGROUPS = 64
_MOST_PROCS_BYTES = 1 << 20
_CREDENTIALS = struct.Struct("3i")
_SO_PASSRIGHTS = 83
"""include/uapi/asm-generic/socket.h, from Linux 6.16 on."""
_HERE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NotThePods(Exception):
    """What is at a place is no socket, or whoever listens there is no process of the pod."""


def has_folder(pods: Path, uid: str) -> bool:
    """Whether the pod has such a volume; a uid that is no name of a folder has none."""
    return "/" not in uid and pods.joinpath(uid, *_EMPTY_DIR).is_dir()


class SocketFolder:
    """The folder of one pod, to be closed soon: while it is open the kubelet cannot unmount it.

    Raises OSError where it does not exist.
    """

    def __init__(self, pods: Path, uid: str) -> None:
        self._descriptor = _descend(pods, (uid, *_EMPTY_DIR))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *of: object) -> None:
        os.close(self._descriptor)

    def names(self) -> tuple[str, ...]:
        """Of what may be sockets, sorted. Raises OSError."""
        listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._descriptor)
        try:
            with os.scandir(listed) as entries:
                names = [entry.name for entry in islice(entries, _MOST_ENTRIES)]
        finally:
            os.close(listed)
        return tuple(sorted(name for name in names if name.endswith(_SUFFIX) and not name.startswith(".")))

    def connect(self, name: str) -> tuple[socket.socket, int]:
        """A connection that does not block, and the process (its number here) that listens at the other end.

        Never waits: where many connections wait already it fails. Raises OSError, NotThePods.
        """
        target = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._descriptor)
        try:
            if not stat.S_ISSOCK(os.fstat(target).st_mode):
                raise NotThePods(f"{name!r} is no socket")
            return _connected(target)
        finally:
            os.close(target)


def is_member(cgroup: Path, process: int) -> bool:
    """Whether the process is in the cgroup or below it, as far down as is looked."""
    if process <= 0:
        # A process that this namespace cannot see.
        return False
    with reachable_folders(str(cgroup), _MOST_CGROUPS) as found:
        return any(process in _processes(folder.path) for folder in found)


def _descend(pods: Path, names: tuple[str, ...]) -> int:
    with contextlib.ExitStack() as above:
        here = os.open(pods, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in names:
            above.callback(os.close, here)
            here = os.open(name, _HERE, dir_fd=here)
        return here


def _connected(target: int) -> tuple[socket.socket, int]:
    """By the descriptor, so that what was looked at is what is opened."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with contextlib.suppress(OSError):
            # A descriptor that is handed over may take its receiver hours to close.
            made.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)
        made.connect(f"/proc/self/fd/{target}")
        told = made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except BaseException:
        made.close()
        raise
    return made, _CREDENTIALS.unpack(told)[0]


def _processes(folder: str) -> Iterator[int]:
    try:
        with open(f"{folder}/cgroup.procs", "rb") as file:  # noqa: PTH123 - the path may be a descriptor's
            yield from map(int, file.read(_MOST_PROCS_BYTES).split())
    except (OSError, ValueError):
        return
