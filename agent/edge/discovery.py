"""Discovery of pod and container cgroups: directories watched by inotify, and a slow rescan behind it.

A change only marks its directory; the directory is then listed again, after its watch is in place, so that nothing
made in between is missed. Without inotify, or beyond its limit of watches, a pod's directory is listed every few passes
and those in which pods appear in each: whoever is root in a container shares these limits with the agent.
On v1 one controller's hierarchy stands for all.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import structlog

from agent.core.observe.layout import CgroupDriver, Layout, PodDirectory, detect
from model.fault import KernelFault

log = structlog.get_logger()

_V1_HIERARCHY = "cpuacct"
_DEEPEST_ROOT = 2
_WATCHED_ROUND = 30
_UNWATCHED_ROUND = 5

_IN_CREATE, _IN_DELETE, _IN_ONLYDIR = 0x100, 0x200, 0x0100_0000
_IN_Q_OVERFLOW, _IN_IGNORED, _IN_ISDIR = 0x4000, 0x8000, 0x4000_0000
_EVENT = struct.Struct("iIII")
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV)
_QUEUE_BYTES = 64 * 1024
_MOST_READS = 64


def find_layout(mount: Path, root: str = "", driver: CgroupDriver | None = None) -> Layout:
    """The layout below `mount` (normally /sys/fs/cgroup); `root` and `driver` win. Raises KernelFault."""
    version = 2 if (mount / "cgroup.controllers").exists() else 1
    tree = tree_of(mount, version)
    if not tree.is_dir():
        raise KernelFault(str(tree), "does not exist", "mount the cgroup file system there, or give --cgroup-root")
    directories = _directories(tree) if not root else (root,) if (tree / root.lstrip("/")).is_dir() else ()
    return detect(str(tree), version, tuple(directories), root, driver)


class Inotify:
    """The kernel's inotify(7), for directories that appear and vanish; never blocks. Raises OSError."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def fileno(self) -> int:
        return self._descriptor

    def add(self, path: str) -> int:
        """Watch a directory's own entries; returns the watch's number, the same one for the same directory."""
        mask = _IN_CREATE | _IN_DELETE | _IN_ONLYDIR
        return self._checked(self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), mask))

    def read(self) -> Iterator[tuple[int, int]]:
        """(watch, mask) of what is queued; ends with an overflow when more is queued than is sensible to read."""
        for _ in range(_MOST_READS):
            try:
                queue = os.read(self._descriptor, _QUEUE_BYTES)
            except BlockingIOError:
                return
            offset = 0
            while offset < len(queue):
                watch, mask, _cookie, length = _EVENT.unpack_from(queue, offset)
                offset += _EVENT.size + length
                yield watch, mask
        yield -1, _IN_Q_OVERFLOW

    def close(self) -> None:
        os.close(self._descriptor)

    @staticmethod
    def _checked(answer: int) -> int:
        if answer < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return answer


class Discovery:
    """The pods below `mount` as `layout` names them. Directories need not exist yet."""

    def __init__(self, mount: Path, layout: Layout, inotify: Inotify | None) -> None:
        self._tree = str(tree_of(mount, layout.version))
        self._layout = layout
        self._classes = (layout.root, layout.burstable, layout.best_effort)
        self._inotify = inotify
        self._listings: dict[str, frozenset[str]] = {}
        self._watched: dict[int, str] = {}
        self._changed = False
        self._unlisted: set[str] = set()
        self._unwatchable_said = False
        self._unlisted_said = False
        self._pass = 0
        self._pods: Mapping[str, PodDirectory] = {}

    @classmethod
    def watching(cls, mount: Path, layout: Layout) -> Discovery:
        """With inotify where the kernel grants it."""
        try:
            return cls(mount, layout, Inotify())
        except (OSError, AttributeError) as error:
            effect = "new pods are found by listing, their containers a few passes late"
            log.warning("no inotify", error=str(error), effect=effect)
            return cls(mount, layout, None)

    def fileno(self) -> int | None:
        """Readable as soon as a pod or container came or went; None without inotify."""
        return self._inotify.fileno() if self._inotify else None

    def pods(self) -> Mapping[str, PodDirectory]:
        """By cgroup uid; the very same mapping as long as nothing changed."""
        again, self._unlisted = self._unlisted, set()
        for path in dict.fromkeys((*sorted(again), *self._marked(), *self._in_turn())):
            self._look(path)
        self._unlisted_said = bool(self._unlisted)
        self._pass += 1
        if self._changed:
            self._changed = False
            found = {uid: self._pod(path) for uid, path in self._pod_paths()}
            self._pods = found if found != self._pods else self._pods
        return self._pods

    def close(self) -> None:
        if self._inotify:
            self._inotify.close()

    def _marked(self) -> Iterator[str]:
        """Directories in which something came or went."""
        for watch, mask in self._inotify.read() if self._inotify else ():
            if mask & _IN_Q_OVERFLOW:
                yield from tuple(self._listings)
            path = self._watched.get(watch)
            if path is None:
                continue
            if mask & _IN_IGNORED:
                del self._watched[watch]
            if mask & (_IN_IGNORED | _IN_ISDIR):
                yield path

    def _in_turn(self) -> Iterator[str]:
        """A share of all directories each pass, so that none is a spike; more often those without a watch, and always
        such that a pod without limits may appear in."""
        watched = set(self._watched.values())
        for number, path in enumerate(self._listings or (self._layout.root,)):
            each = _WATCHED_ROUND if path in watched else 1 if path in self._classes else _UNWATCHED_ROUND
            if (number + self._pass) % each == 0:
                yield path

    def _look(self, path: str) -> None:
        """List one directory, and those of interest in it that were not listed yet."""
        self._watch(path)
        try:
            names = _children(self._tree + path)
        except OSError as error:
            self._look_later(path, error)
            return
        if names is None:
            self._forget(path)
            return
        before = self._listings.get(path)
        self._listings[path] = names
        self._changed |= names != before
        if path not in self._classes:
            return
        for name in (before or frozenset()) - names:
            self._forget(f"{path}/{name}")
        for name in sorted(names):
            child = f"{path}/{name}"
            if child not in self._listings and (child in self._classes or self._layout.pod_uid_of(name)):
                self._look(child)

    def _look_later(self, path: str, error: OSError) -> None:
        """Whatever keeps us from listing a directory, what is known of it stays until the next pass can tell."""
        self._unlisted.add(path)
        if not self._unlisted_said:
            self._unlisted_said = True
            effect = "its pods stay as they were known; it is listed again in each pass"
            log.warning("directory cannot be listed", path=path, error=error.strerror, effect=effect)

    def _forget(self, path: str) -> None:
        for name in self._listings.pop(path, ()):
            self._forget(f"{path}/{name}")
        self._changed = True

    def _watch(self, path: str) -> None:
        if self._inotify is None:
            return
        try:
            self._watched[self._inotify.add(self._tree + path)] = path
        except OSError as error:
            if error.errno != errno.ENOENT and not self._unwatchable_said:
                self._unwatchable_said = True
                log.warning(
                    "directory cannot be watched",
                    path=path,
                    error=error.strerror,
                    effect="a pod's is listed every few passes, those of QoS classes in each",
                    fix="raise fs.inotify.max_user_watches",
                )

    def _pod_paths(self) -> Iterator[tuple[str, str]]:
        for parent in self._classes:
            for name in sorted(self._listings.get(parent, ())):
                path, uid = f"{parent}/{name}", self._layout.pod_uid_of(name)
                if uid and path in self._listings:
                    yield uid, path

    def _pod(self, path: str) -> PodDirectory:
        names = sorted(self._listings[path])
        found = {id_: f"{path}/{name}" for name in names if (id_ := self._layout.container_id_of(name))}
        return PodDirectory(path, found)


def tree_of(mount: Path, version: int) -> Path:
    """What a layout's paths are below."""
    return mount if version == 2 else mount / _V1_HIERARCHY


def _directories(tree: Path) -> Iterator[str]:
    """A few levels only: a kubelet's own cgroup root is not deep."""
    level: Iterable[str] = ("",)
    for _ in range(_DEEPEST_ROOT):
        level = [f"{path}/{name}" for path in level for name in _listed(f"{tree}{path}")]
        yield from level


def _listed(path: str) -> frozenset[str]:
    """Names of the directories in `path`, none where it cannot be listed."""
    try:
        return _children(path) or frozenset()
    except OSError:
        return frozenset()


def _children(path: str) -> frozenset[str] | None:
    """Names of the directories in `path`; None where it is gone. Raises OSError where that cannot be told."""
    try:
        with os.scandir(path) as entries:
            return frozenset(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
