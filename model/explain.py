"""The one place that turns a Decision into words, for logs, Events and people alike."""

from __future__ import annotations

from collections.abc import Iterable

from model.decision import Decision, Unit
from model.quantity import format_bytes, format_millis
from model.reason import words

UNLIMITED = -1
"""The value of a limit that limits nothing, in the units below."""
_LIMITED = (Unit.MICROSECONDS, Unit.BYTES, Unit.PIDS)


OFFERED = "published"
"""The policy of a decision about what a Node's status offers; its subject and name are those of what may be lent."""


def amount(value: int, unit: Unit) -> str:
    """A value with its unit, as a person reads it: `1500m`, `2Gi`, `~14.68Gi`, `95000us`."""
    if unit in _LIMITED and value == UNLIMITED:
        return "unlimited"
    if unit is Unit.MILLI_CPU:
        return format_millis(value)
    if unit is Unit.BYTES:
        exact = format_bytes(value)
        return exact if exact[-1:].isalpha() or abs(value) < 1 << 20 else f"~{value / (1 << 30):.2f}Gi"
    if unit is Unit.MICROSECONDS:
        return f"{value}us"
    return str(value) if unit is Unit.NUMBER else f"{value} {unit.value}"


def sentence(decision: Decision) -> str:
    """One line: `cpu.shares of cgroup/x = 2 shares: <why> [capacity 5 - margin 3]`; terms of 0 are left out."""
    shown = () if _unlimited(decision) else tuple(term for term in decision.terms if term.value)
    terms = " ".join(f"{_sign(term.value)} {term.name} {abs(term.value)}" for term in shown)
    whose = "offered by" if decision.policy == OFFERED else "of"
    value, why = amount(decision.value, decision.unit), words(decision.reason)
    text = f"{decision.name} {whose} {decision.subject} = {value}: {why}"
    text += f" [{terms.removeprefix('+ ')}]" if terms else ""
    return f"{text}; {decision.detail}" if decision.detail else text


def lines(decision: Decision) -> list[str]:
    """A small table: the head line, one line a term, the sum. No limit is no sum of anything."""
    head = f"{decision.subject}  {decision.name}" + (f"  (policy {decision.policy})" if decision.policy else "")
    width = max((len(term.name) for term in decision.terms), default=0)
    width = max(width, len("= value"))
    rows = [
        f"  {_sign(term.value)} {term.name:<{width}} {abs(term.value):>16}" + (f"   {term.note}" if term.note else "")
        for term in decision.terms
    ]
    total = f"  = {'value':<{width}} {decision.value:>16}   {amount(decision.value, decision.unit)}"
    if _unlimited(decision):
        rows, total = [], "  = unlimited"
    why = f"  {decision.reason.value}: {words(decision.reason)}" + (f"; {decision.detail}" if decision.detail else "")
    return [head, *rows, total, why]


def _unlimited(decision: Decision) -> bool:
    return decision.unit in _LIMITED and decision.value == UNLIMITED


def _sign(value: int) -> str:
    return "-" if value < 0 else "+" if value > 0 else " "


def text(decisions: Iterable[Decision]) -> str:
    """Several decisions as tables, an empty line between two."""
    return "\n\n".join("\n".join(lines(decision)) for decision in decisions)
