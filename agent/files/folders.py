"""The folders of a tree, however deep: whoever may make cgroups below a pod's says how deep they are, and how many."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

_LONGEST_PATH = 3072
"""Below PATH_MAX by more than two names are long: that of a folder below it, and that of a file there."""
_MOST_OPEN = 64


class Folder(NamedTuple):
    """`below` is its path below the top, empty for the top itself; `path` opens it, however long that is."""

    below: str
    path: str


@contextmanager
def reachable_folders(top: str, most: int = sys.maxsize) -> Iterator[list[Folder]]:
    """As `folders`, also those whose path is longer than the kernel takes (PATH_MAX).

    Folders on the way to these are kept open meanwhile, so many at most; what is below others is left out.
    """
    found, waiting, opened = list[Folder](), deque([Folder("", top)]), list[int]()
    try:
        while waiting and len(found) < most:
            folder = waiting.popleft()
            found.append(folder)
            room = most - len(found) - len(waiting)
            try:
                with os.scandir(folder.path) as entries:
                    names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
                    children = list(islice(names, max(room, 0)))
            except OSError:
                continue
            base = _near(folder.path, opened) if children else ""
            waiting.extend(Folder(f"{folder.below}/{name}", f"{base}/{name}") for name in children if base)
        yield found
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _near(path: str, opened: list[int]) -> str:
    """What its children are opened by: its descriptor where the path is long; empty where that cannot be had."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        return path
    if len(opened) >= _MOST_OPEN:
        return ""
    try:
        opened.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return ""
    return f"/proc/self/fd/{opened[-1]}"


def folders(top: str, most: int = sys.maxsize) -> Iterator[str]:
    """`top` and every folder below it, level by level; what vanishes meanwhile, or cannot be listed, is left out.

    No more than `most` are listed. Never raises, unlike os.walk, which calls itself for each level.
    """
    waiting, room = deque([top]), most - 1
    while waiting:
        folder = waiting.popleft()
        yield folder
        if room <= 0:
            continue
        try:
            with os.scandir(folder) as entries:
                found = (entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
                before = len(waiting)
                waiting.extend(islice(found, room))
        except OSError:
            continue
        room -= len(waiting) - before
