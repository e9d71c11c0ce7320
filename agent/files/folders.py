"""The folders of a tree, however deep: whoever may make cgroups below a pod's says how deep they are, and how many."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from itertools import islice


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
