"""Tables for a terminal, or for a file: there without padding up to the width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table

from view.table import TableRow

_GAP = "  "
_NAME, _CELLS = 34, 21
"""Columns of text of a row's name, and of its cells together."""


def show(console: Console, table: Table) -> None:
    """Print the table; where nobody looks at a terminal no line ends in blanks, and nothing is coloured."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)


def aligned(rows: Sequence[Sequence[str]], left: int | None = None) -> list[str]:
    """A line a row, without blanks at its end: the first `left` columns to the left, default: all, others to the right.

    Each row has as many cells as the first.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(
            cell.ljust(width) if left is None or index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def row_lines(rows: Iterable[TableRow]) -> Iterator[str]:
    """A line a row: its name, its cells to the right, and its note."""
    for row in rows:
        width = (_CELLS - len(row.cells) + 1) // max(len(row.cells), 1)
        cells = " ".join(cell.rjust(width) for cell in row.cells)
        yield f"{row.name:<{_NAME}} {cells}   {row.note}".rstrip()
