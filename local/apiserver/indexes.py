"""Sets of completion indexes as Kubernetes writes them: `1,3-5,7`."""

from __future__ import annotations

from collections.abc import Iterable


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
