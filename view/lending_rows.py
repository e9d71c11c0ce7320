"""Reclaimable amounts of a node in rows: a row a term with a cell a resource, and last the integers written."""

from __future__ import annotations

from collections.abc import Iterator

from model.decision import Decision, Term, Unit
from model.reason import Reason, words
from view.simulated_node import NodeDecisions
from view.table import TableRow

_SCALES = {Unit.MILLI_CPU: 1000, Unit.BYTES: 1 << 30}
_AGES = ((86_400, "d"), (3600, "h"), (60, "min"))
_UNITS = ("CPUs", "GiB")
_EMPTY = TableRow("")
_Pair = tuple[Decision, ...]
"""CPU, then memory."""


def lending_rows(item: NodeDecisions) -> tuple[TableRow, ...]:
    """CPU in CPUs, memory in GiB rounded to thousandths."""
    return tuple(_rows(item))


def _rows(item: NodeDecisions) -> Iterator[TableRow]:
    if item.degraded:
        yield TableRow(f"nothing is lent: {item.degraded.value}, {words(item.degraded)}{_limit(item)}")
    else:
        yield from _lent(item)
    yield _EMPTY
    yield from _written(item)


def _lent(item: NodeDecisions) -> Iterator[TableRow]:
    batch, mid = item.reclaimable[:2], item.reclaimable[2:]
    yield from _block("batch", batch, f"policy {_both(*(decision.policy for decision in batch))}")
    yield _EMPTY
    yield from _block("mid", mid, f"policy {_both(*(decision.policy for decision in mid))}")
    if item.zones:
        yield from (_EMPTY, TableRow("batch in zones", _UNITS))
        yield from (TableRow(f"  {zone.name}", _sums(zone.decisions)) for zone in item.zones)
    if any(len(decision.terms) > 1 for decision in item.prepared):
        yield _EMPTY
        yield from _block("batch as written", item.prepared[:2])


def measured_text(item: NodeDecisions) -> str:
    """When usage was measured, seen from the time of the decisions."""
    if item.measured_seconds is None:
        return "usage not known"
    age = item.at_seconds - item.measured_seconds
    return f"usage measured {_span(abs(age))} {'earlier' if age >= 0 else 'later'}"


def _limit(item: NodeDecisions) -> str:
    stale = item.degraded is Reason.NODE_METRICS_STALE
    return f" (at most {_span(item.degrade_seconds)})" if stale else ""


def _span(seconds: float) -> str:
    for length, unit in _AGES:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _block(title: str, pair: _Pair, note: str = "") -> list[TableRow]:
    """A row a term and the sum; one row where every term is 0."""
    if not any(term.value for decision in pair for term in decision.terms):
        return [TableRow(f"{title}: nothing is lent{_because(pair)}")]
    rows = [TableRow(title, _UNITS, note)]
    for name in _names(pair):
        terms = [_term(decision, name) for decision in pair]
        cells = tuple(_signed(term, decision) for term, decision in zip(terms, pair, strict=True))
        rows.append(TableRow(f"  {name}", cells, _both(*(term.note for term in terms if term))))
    return [*rows, TableRow("  = value", _sums(pair), _because(pair).removeprefix("; "))]


def _because(pair: _Pair) -> str:
    details = {decision.detail: None for decision in pair if decision.detail}
    return f"; {'; '.join(details)}" if details else ""


def _names(pair: _Pair) -> list[str]:
    """The terms of both, each in its own order."""
    names, other = ([term.name for term in decision.terms] for decision in pair)
    for index, name in enumerate(other):
        if name not in names:
            later = (names.index(common) for common in other[index + 1 :] if common in names)
            names.insert(next(later, len(names)), name)
    return names


def _term(decision: Decision, name: str) -> Term | None:
    return next((term for term in decision.terms if term.name == name), None)


def _signed(term: Term | None, decision: Decision) -> str:
    if term is None:
        return ""
    return f"{term.value / _SCALES[decision.unit]:+.3f}" if term.value else "0.000"


def _written(item: NodeDecisions) -> Iterator[TableRow]:
    """The exact integers; and where running pods hold more, what the agent leaves standing for the kubelet."""
    if item.prepared:
        yield TableRow("written to the Node's capacity and allocatable")
    else:
        yield TableRow("the Node's batch and mid resources are removed")
    yield from (TableRow(f"  {decision.name}", (str(decision.value),)) for decision in item.prepared)
    for decision in item.kept:
        why = "while running pods request that much, so that a kubelet can admit them again (docs/adr/0004)"
        yield TableRow(f"  the agent keeps {decision.name} at {decision.value} {why}")


def _sums(pair: _Pair) -> tuple[str, ...]:
    return tuple(f"{decision.value / _SCALES[decision.unit]:.3f}" for decision in pair)


def _both(*notes: str) -> str:
    """Two notes in one: the words they share stand once, those that differ as `a / b`."""
    if len(set(notes)) < 2:
        return notes[0] if notes else ""
    first, second = (note.split(" ") for note in notes)
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    end = 0
    while end < min(len(first), len(second)) - start and first[-1 - end] == second[-1 - end]:
        end += 1
    middle = " / ".join(" ".join(text[start : len(text) - end]) for text in (first, second))
    return " ".join([*first[:start], middle, *first[len(first) - end :]])
