"""Tables for a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

# Not the terminal's width: a pipe has none, and a cut table says nothing.
_WIDTH = 100


def block(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A title and a table; nothing where there are no rows."""
    if not rows:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(f"\n{title}", style="bold")
    console.print(table)


def console(width: int = _WIDTH) -> Console:
    return Console(width=width, highlight=False)
