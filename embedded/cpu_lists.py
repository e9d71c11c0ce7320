"""Linux CPU lists such as `0-3,8`. Source: cpuset(7), List format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

_LARGEST_CPU = 65_535
"""Linux counts to 8192 at most; beyond this a text is garbage, not a machine."""
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def parse_cpus(text: str) -> tuple[int, ...]:
    """The CPUs of a Linux CPU list such as `0-3,8`, ascending; none for an empty one. Raises ValueError."""
    found: set[int] = set()
    named = 0
    for part in text.strip().split(",") if text.strip() else ():
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        named += last - first + 1
        if first > last or last > _LARGEST_CPU or named > _LARGEST_CPU + 1:
            raise ValueError(f"{text[:60]!r} is not a CPU list; write numbers and ranges such as 0-3,8")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def format_cpus(cpus: Iterable[int]) -> str:
    """The shortest Linux CPU list: (0, 1, 2, 8) → `0-2,8`."""
    ordered = sorted(set(cpus))
    runs = [[cpu for _, cpu in run] for _, run in groupby(enumerate(ordered), lambda pair: pair[1] - pair[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
