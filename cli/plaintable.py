"""A table for a terminal, or for a file: there without padding up to the width."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def show(console: Console, table: Table) -> None:
    """Print the table; where nobody looks at a terminal no line ends in blanks, and nothing is coloured."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)
