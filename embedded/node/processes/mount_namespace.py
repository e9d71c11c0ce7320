"""A mount namespace of a container's own: this machine's file system with the container's volumes in their places.

Part of the entry program, which imports it by its place only where a container has mounts. The machine's files are
never changed: where a mount point is missing, the nearest directory above it is covered, inside the namespace only,
by a small tmpfs that shows the same entries (each bound, links copied) and has room for new ones. No overlay is used:
writes outside the volumes reach the machine exactly as they do for a container without mounts, and the same works
in a user namespace, for a user who may make one. See mount_namespaces(7), pivot_root(2).
"""

# Every import is paid for at the start of each container:
# ruff: noqa: PTH103, PTH112, PTH115, PTH116, PTH118, PTH120, PTH102, PTH123, PTH208, PTH211, SIM105
from __future__ import annotations

import ctypes
import os
import stat

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_MOVE, _MS_REC, _MS_SLAVE = 1, 32, 4096, 8192, 16384, 1 << 19
_MNT_DETACH = 2
# statvfs(3) and mount(2) share the bits of nosuid, nodev and noexec; relatime moved.
_KEPT_FLAGS = 2 | 4 | 8 | 1024 | 2048
_ST_RELATIME, _MS_RELATIME = 4096, 1 << 21
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)

# Target, source, read-only.
Mounts = list[tuple[str, str, bool]]


def enter_new(mounts: Mounts, stage: str) -> None:
    """Raises OSError naming the step; the process has then to end. `stage` is an empty directory."""
    _unshare()
    mount(None, "/", None, _MS_REC | _MS_SLAVE)
    space = _Space(stage)
    for target, source, read_only in sorted(mounts, key=lambda each: len(each[0])):
        space.bind(source, target, read_only)


def join(pid: int) -> None:
    """Enter the namespace of a running container."""
    descriptors = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in _differing(pid)]
    for descriptor in descriptors:
        _check(_libc.setns(descriptor, 0), f"namespace of process {pid}")
        os.close(descriptor)


def _differing(pid: int) -> list[str]:
    """The user namespace first: it gives the right to enter the other."""
    return [n for n in ("user", "mnt") if os.readlink(f"/proc/{pid}/ns/{n}") != os.readlink(f"/proc/self/ns/{n}")]


class _Space:
    """The namespace while it is furnished."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._covers: set[int] = set()
        self._volumes: list[str] = []

    def bind(self, source: str, target: str, read_only: bool) -> None:
        self._make_point(target, os.path.isdir(source))
        mount(source, target, None, _MS_BIND | _MS_REC)
        if read_only:
            mount(None, target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept_flags(target))
        self._volumes.append(os.path.realpath(target))

    def _make_point(self, target: str, directory: bool) -> None:
        if os.path.lexists(target) and os.path.isdir(target) == directory:
            return
        parent = os.path.dirname(target)
        while not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        parent = os.path.realpath(parent)
        if not self._may_grow(parent):
            self._cover(parent)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if directory:
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))

    def _may_grow(self, directory: str) -> bool:
        """Inside a volume or a cover a new entry is nobody else's business."""
        if os.stat(directory).st_dev in self._covers:
            return True
        return any(directory == each or directory.startswith(each + "/") for each in self._volumes)

    def _cover(self, directory: str) -> None:
        mode = stat.S_IMODE(os.stat(directory).st_mode)
        mount("tmpfs", self._stage, "tmpfs", 0, f"mode={mode:o}")
        for name in os.listdir(directory):
            try:
                _show(os.path.join(directory, name), os.path.join(self._stage, name))
            except OSError:
                pass  # an entry that even this user cannot touch is not missed
        self._covers.add(os.stat(self._stage).st_dev)
        if directory == "/":
            _change_root(self._stage)
        else:
            mount(self._stage, directory, None, _MS_MOVE)


def _show(there: str, here: str) -> None:
    mode = os.lstat(there).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(there), here)
        return
    if stat.S_ISDIR(mode):
        os.mkdir(here)
    else:
        os.close(os.open(here, os.O_CREAT | os.O_WRONLY))
    mount(there, here, None, _MS_BIND | _MS_REC)


def _change_root(new: str) -> None:
    """The old root ends up on top of the new one and is taken away: no directory for it is needed."""
    os.chdir(new)
    _check(_libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    unmount(".")
    os.chdir("/")


def _unshare() -> None:
    """Without root a user namespace, in which the user stays who he is, gives the right to mount."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _check(_libc.unshare(_CLONE_NEWNS), "mount namespace")
        return
    _check(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS), "user and mount namespace")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def kept_flags(target: str) -> int:
    """What a remount must repeat of a mount's flags, else it takes them away or is refused. Raises OSError."""
    flags = os.statvfs(target).f_flag
    return flags & _KEPT_FLAGS | (_MS_RELATIME if flags & _ST_RELATIME else 0)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2). Raises OSError naming the target."""
    words = (each.encode() if each is not None else None for each in (source, target, kind))
    _check(_libc.mount(*words, ctypes.c_ulong(flags), data.encode() if data is not None else None), target)


def unmount(target: str) -> None:
    """Away with it even if it is in use. Raises OSError."""
    _check(_libc.umount2(os.fsencode(target), _MNT_DETACH), target)


def _check(answer: int, what: str) -> None:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    # Started for its exit code: may this user make a mount namespace here?
    _unshare()
    mount(None, "/", None, _MS_REC | _MS_SLAVE)
