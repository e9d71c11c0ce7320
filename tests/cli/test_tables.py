"""Tables where nobody looks at a terminal, and on one."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

from cli.tables import aligned, row_lines, show
from view.table import TableRow


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


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    """To the left all of them, or the first ones; no line ends in blanks."""
    rows = (("a", "bb", ""), ("ccc", "d", "e"))
    assert aligned(rows) == ["a    bb", "ccc  d   e"]
    assert aligned(rows, left=1) == ["a    bb", "ccc   d  e"]


def test_rows_have_their_cells_below_each_other() -> None:
    """One wide cell ends where the last of two does; words alone are a line."""
    rows = (
        TableRow("batch", ("CPUs", "GiB"), "note"),
        TableRow("  value", ("2500",)),
        TableRow("nothing is lent"),
        TableRow(""),
    )
    lines = list(row_lines(rows))
    assert lines == [
        "batch" + " " * 36 + "CPUs" + " " * 8 + "GiB   note",
        "  value" + " " * 45 + "2500",
        "nothing is lent",
        "",
    ]
