"""Tables of texts: what stands in which cell, without widths, colours or padding."""

from __future__ import annotations

import msgspec


class TableRow(msgspec.Struct, frozen=True):
    """A name, cells of values, and words about them; a line of words alone has no cells and no note."""

    name: str
    cells: tuple[str, ...] = ()
    note: str = ""


class Table(msgspec.Struct, frozen=True):
    """Each row has as many cells as `head`."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
