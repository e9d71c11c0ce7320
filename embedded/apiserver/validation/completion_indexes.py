"""Sets of completion indexes as Kubernetes writes them: `1,3-5,7`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from embedded.apiserver.apimachinery.objects import quoted


def index_text(numbers: Iterable[int]) -> str:
    """The shortest text of a set of indexes; two neighbours are written apart, as upstream does."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{r[0]}" if len(r) == 1 else f"{r[0]},{r[1]}" if len(r) == 2 else f"{r[0]}-{r[-1]}" for r in runs]
    return ",".join(parts)


def parse_indexes(text: str | None) -> frozenset[int]:
    """The indexes of such a text; raises ValueError for one that is none."""
    found: set[int] = set()
    for part in (text or "").split(","):
        if part:
            first, dash, last = part.partition("-")
            found.update(range(int(first), int(last if dash else first) + 1))
    return frozenset(found)


def index_count(text: str, completions: int) -> int:
    """How many indexes such a text names; raises ValueError, in Kubernetes' words, for one that no job of so many
    completions can have. Source: `validateIndexesFormat` in kubernetes `pkg/apis/batch/validation`.
    """
    count, last = 0, -1
    for part in text.split(",") if text else ():
        limits = part.split("-")
        if len(limits) > 2:
            raise ValueError(
                f"the fragment {quoted(part)} violates the requirement that an index interval can have at most two "
                "parts separated by '-'"
            )
        first = last
        for number, limit in enumerate(limits):
            index = _index(limit, completions)
            if last >= index:
                raise ValueError(f"non-increasing order, previous: {last}, current: {index}")
            count += index - first if number else 1
            first = last = index
    return count


def _index(text: str, completions: int) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise ValueError(f"cannot convert string to integer for index: {quoted(text)}")
    if int(text) >= completions:
        raise ValueError(f"too large index: {quoted(text)}")
    return int(text)
