"""`sublet top` as text: columns, as many rows as there is room for. CPU in cores, memory in GiB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from cli.tables import aligned
from view.answers import GangAnswer
from view.top import Amounts, NodeRow, PodRow, total

Row = TypeVar("Row")

_UNKNOWN = "-"
_AT_LEAST = "≥"
_AMOUNTS = ("ALLOC", "ONLINE", "USED", "LENT", "TAKEN", "BE USED")
_GAP = "  "
_NOTE = "ONLINE: requested by online pods, LENT: offered to batch pods, TAKEN: requested of that, BE USED: used of that"


def nodes_text(rows: Sequence[NodeRow], height: int | None = None) -> str:
    """The sum of all, then a line a node."""
    limited = any(row.limit_millis is not None for row in rows)
    head = ["NODE", "STATE", *_AMOUNTS, *_AMOUNTS, "BE PODS", *(["BE LIMIT"] if limited else [])]
    shown, left = _fitting(rows, height, fixed=5)
    cells = [_sum_cells(rows, limited), *(_node_cells(row, limited) for row in shown)]
    lines = aligned([head, *cells], left=2)
    return "\n".join([_groups([head, *cells]), *lines, *_more(left, "nodes"), "", _NOTE])


def pods_text(rows: Sequence[PodRow], height: int | None = None) -> str:
    """A line a pod that lives on lent resources."""
    if not rows:
        return "no pod lives on lent resources"
    head = ["NAMESPACE", "POD", "NODE", "PHASE", "GANG", "CPU", "OF", "MEMORY", "OF"]
    shown, left = _fitting(rows, height, fixed=2)
    cells = [
        [
            row.namespace,
            row.name,
            row.node,
            row.phase,
            row.gang or _UNKNOWN,
            _cores(row.used.cpu_millis if row.used else None),
            _cores(row.requested.cpu_millis),
            _gib(row.used.memory_bytes if row.used else None),
            _gib(row.requested.memory_bytes),
        ]
        for row in shown
    ]
    return "\n".join([*aligned([head, *cells], left=5), *_more(left, "pods")])


def gangs_text(rows: Sequence[GangAnswer], height: int | None = None) -> str:
    """A line a gang that the scheduler knows."""
    if not rows:
        return "the scheduler knows no gang"
    head = ["NAMESPACE", "GANG", "WAITS FOR", "MINIMUM", "MEMBERS", "PLACED"]
    shown, left = _fitting(rows, height, fixed=2)
    cells = [
        [
            row.namespace,
            row.name,
            row.problem or row.reason or _UNKNOWN,
            *map(str, (row.min_member, row.members, row.scheduled)),
        ]
        for row in shown
    ]
    return "\n".join([*aligned([head, *cells], left=3), *_more(left, "gangs")])


def _node_cells(row: NodeRow, limited: bool) -> list[str]:
    limit = [_cores(row.limit_millis)] if limited else []
    cpu, memory = ([show(value) for value in _values(of)] for show, of in ((_cores, row.cpu), (_gib, row.memory)))
    return [row.name, row.state, *cpu, *memory, str(row.best_effort_pods), *limit]


def _sum_cells(rows: Sequence[NodeRow], limited: bool) -> list[str]:
    """A sum is at least what is shown where some of its rows are not known."""
    every = [_node_cells(row, limited) for row in rows]
    return [
        f"{_AT_LEAST}{cell}" if cell != _UNKNOWN and any(row[column] == _UNKNOWN for row in every) else cell
        for column, cell in enumerate(_node_cells(total(rows), limited))
    ]


def _values(amounts: Amounts) -> Iterable[int | None]:
    return (
        amounts.allocatable,
        amounts.online_requested,
        amounts.used,
        amounts.lent,
        amounts.lent_requested,
        amounts.lent_used,
    )


def _cores(millis: int | None) -> str:
    return _UNKNOWN if millis is None else f"{millis / 1000:.1f}"


def _gib(amount: int | None) -> str:
    return _UNKNOWN if amount is None else f"{amount / (1 << 30):.1f}"


def _groups(rows: Sequence[Sequence[str]]) -> str:
    """What the two groups of columns are, above the first of each."""
    widths = _widths(rows)
    starts = [sum(widths[:index]) + len(_GAP) * index for index in (2, 2 + len(_AMOUNTS))]
    line = f"{'':<{starts[0]}}CPU, cores"
    return f"{line:<{starts[1]}}MEMORY, GiB"


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _fitting(rows: Sequence[Row], height: int | None, fixed: int) -> tuple[Sequence[Row], int]:
    """The first rows that fit beside `fixed` other lines, and how many do not."""
    room = len(rows) if height is None else max(height - fixed - 1, 1)
    return (rows, 0) if len(rows) <= room else (rows[:room], len(rows) - room)


def _more(left: int, what: str) -> list[str]:
    return [f"… and {left:,} more {what}"] if left else []
