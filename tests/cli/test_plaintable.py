"""Tables where nobody looks at a terminal, and on one."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

from cli.plaintable import show


def shown(terminal: bool) -> str:
    table = Table(box=None, header_style="bold")
    for heading in ("CHECK", "VERDICT"):
        table.add_column(heading)
    table.add_row("kernel", "[red]refused[/red]")
    file = io.StringIO()
    show(Console(file=file, force_terminal=terminal, width=60, color_system="standard" if terminal else None), table)
    return file.getvalue()


def test_in_a_file_no_line_is_padded_or_coloured() -> None:
    """Not even the last column, which a terminal's width would fill."""
    lines = shown(terminal=False).splitlines()
    assert [line.split() for line in lines] == [["CHECK", "VERDICT"], ["kernel", "refused"]]
    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)


def test_a_terminal_has_its_colours() -> None:
    assert "\x1b[31m" in shown(terminal=True)
