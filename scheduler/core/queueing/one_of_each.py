"""One of each line, then the next of each: nobody's thousands stand before the first of another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def one_of_each(lines: Iterable[Iterable[T]]) -> Iterator[T]:
    """All of all lines, which go in their order; None is in no line."""
    left = [iter(line) for line in lines]
    while left:
        found = [(line, each) for line in left if (each := next(line, None)) is not None]
        yield from (each for _, each in found)
        left = [line for line, _ in found]
