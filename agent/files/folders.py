"""The folders of a tree, however deep: whoever may make cgroups below a pod's decides how deep they are."""

from __future__ import annotations

import os
from collections.abc import Iterator


def folders(top: str) -> Iterator[str]:
    """`top` and every folder below it, parents first; what vanishes meanwhile, or cannot be listed, is left out.

    Never raises, unlike os.walk, which calls itself for each level.
    """
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        yield folder
        try:
            with os.scandir(folder) as entries:
                waiting.extend(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
