"""`sublet top queues` as text: the tree of queues, a line a resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cli.tables import aligned
from view.queue_rows import QueueCellRow, QueueRow, cell_name, shown

_HEAD = (
    "QUEUE",
    "STATE",
    "RESOURCE",
    "GUARANTEED",
    "FAIR SHARE",
    "USED",
    "BORROWED",
    "LENT",
    "PENDING",
    "RUNNING",
)
_NONE = "-"
_INDENT = "  "


def queues_text(rows: Sequence[QueueRow], height: int | None = None) -> str:
    """A line a queue and resource, those below a queue indented; as many lines as there is room for."""
    lines = [line for row in rows for line in _lines(row)]
    room = len(lines) if height is None else max(height - 2, 1)
    shown_lines = lines if len(lines) <= room else lines[:room]
    left = len(lines) - len(shown_lines)
    more = [f"… and {left:,} more lines"] if left else []
    return "\n".join([*aligned([_HEAD, *shown_lines], left=3), *more])


def _lines(row: QueueRow) -> Iterator[tuple[str, ...]]:
    """The first has what is said of the queue as a whole."""
    name, state = f"{_INDENT * row.depth}{row.name}", "Invalid" if row.problem else row.state
    jobs = (str(row.pending_jobs), str(row.running_jobs))
    if not row.cells:
        yield (name, state, *[_NONE] * 6, *jobs)
    for number, cell in enumerate(row.cells):
        first = number == 0
        yield (name if first else "", state if first else "", *_amounts(cell), *(jobs if first else ("", "")))


def _amounts(cell: QueueCellRow) -> tuple[str, ...]:
    amounts = (cell.guaranteed, cell.fair_share, cell.used, cell.borrowed, cell.lent)
    return (cell_name((cell.flavor, cell.resource)), *(shown(cell.resource, amount) for amount in amounts))
