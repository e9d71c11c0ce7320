"""What a node may lend as a table for people: a line a term, a column a resource, and last the integers written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from agent.core.lend.offer import offered
from agent.core.lend.reclaimable import LendingFacts
from cli.simulated import Simulated
from model.decision import Decision, Term, Unit
from model.reason import Reason, words

_SCALES = {Unit.MILLI_CPU: 1000, Unit.BYTES: 1 << 30}
_NAME, _CELL = 34, 10
_AGES = ((86_400, "d"), (3600, "h"), (60, "min"))
_UNITS = ("CPUs", "GiB")
_Pair = tuple[Decision, ...]
"""CPU, then memory."""


def table(item: Simulated) -> str:
    """Several lines; CPU in CPUs, memory in GiB rounded to thousandths."""
    lent = item.lent
    lines = [f"node {item.node.name}, {_times(item.facts)}"]
    if lent.degraded:
        lines += ["", f"nothing is lent: {lent.degraded.value}, {words(lent.degraded)}{_limit(item)}"]
        return "\n".join([*lines, "", *_written(item)])
    batch, mid = lent.reclaimable[:2], lent.reclaimable[2:]
    for title, pair in (("batch", batch), ("mid", mid)):
        lines += ["", *_block(title, pair, f"policy {_both(*(decision.policy for decision in pair))}")]
    if lent.zones:
        lines += ["", _row("batch in zones", _UNITS)]
        lines += [_row(f"  {zone.name}", _sums(zone.decisions)) for zone in lent.zones]
    if any(len(decision.terms) > 1 for decision in lent.prepared):
        lines += ["", *_block("batch as written", lent.prepared[:2])]
    return "\n".join([*lines, "", *_written(item)])


def _times(facts: LendingFacts) -> str:
    told = f"at {datetime.fromtimestamp(facts.now, UTC):%Y-%m-%dT%H:%M:%SZ}"
    measured = facts.metric.updated_seconds if facts.metric else None
    if measured is None:
        return f"{told}, usage not known"
    age = facts.now - measured
    return f"{told}, usage measured {_span(abs(age))} {'earlier' if age >= 0 else 'later'}"


def _limit(item: Simulated) -> str:
    stale = item.lent.degraded is Reason.NODE_METRICS_STALE
    return f" (at most {_span(item.strategy.degrade_seconds)})" if stale else ""


def _span(seconds: float) -> str:
    for length, unit in _AGES:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _block(title: str, pair: _Pair, note: str = "") -> list[str]:
    """A line a term and the sum; one line where every term is 0."""
    if not any(term.value for decision in pair for term in decision.terms):
        return [f"{title}: nothing is lent{_because(pair)}"]
    rows = [_row(title, _UNITS, note)]
    for name in _names(pair):
        terms = [_term(decision, name) for decision in pair]
        cells = (_signed(term, decision) for term, decision in zip(terms, pair, strict=True))
        rows.append(_row(f"  {name}", cells, _both(*(term.note for term in terms if term))))
    return [*rows, _row("  = value", _sums(pair), _because(pair).removeprefix("; "))]


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


def _written(item: Simulated) -> Iterator[str]:
    """The exact integers; and where running pods hold more, what the agent leaves standing for the kubelet."""
    lent = item.lent
    if lent.prepared:
        yield "written to the Node's capacity and allocatable"
    else:
        yield "the Node's batch and mid resources are removed"
    yield from (f"  {decision.name:<{_NAME}} {decision.value:>{2 * _CELL - 1}}" for decision in lent.prepared)
    final = {decision.name: decision.value for decision in lent.final}
    for decision in offered(lent, item.facts.pods or (), (), {}, may_grow=True):
        if decision.value != final[decision.name]:
            why = "while running pods request that much, so that a kubelet can admit them again (docs/adr/0004)"
            yield f"  the agent keeps {decision.name} at {decision.value} {why}"


def _sums(pair: _Pair) -> Iterator[str]:
    return (f"{decision.value / _SCALES[decision.unit]:.3f}" for decision in pair)


def _row(name: str, cells: Iterable[str], note: str = "") -> str:
    return f"{name:<{_NAME}} {' '.join(f'{cell:>{_CELL}}' for cell in cells)}   {note}".rstrip()


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
