"""Limits of best effort and evictions in rows: of what was computed a row a term, and the sum first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from model.decision import Decision, Unit
from model.explain import UNLIMITED
from model.reason import Reason, words
from view.simulated_node import NodeDecisions, SimulatedEviction, SimulatedLimit
from view.table import TableRow

_BASES = {Unit.MICROSECONDS: (0, "CPUs"), Unit.MILLI_CPU: (1000, "CPUs"), Unit.BYTES: (1 << 30, "GiB")}
"""Unit → how many of it make one of the unit that people read; of microseconds as many as a quota's period has."""


def limit_rows(item: NodeDecisions) -> tuple[TableRow, ...]:
    """CPU in CPUs, memory in GiB rounded to thousandths."""
    shown = _Shown(item)
    return (*shown.limits(), TableRow(""), *shown.evictions())


class _Shown:
    def __init__(self, item: NodeDecisions) -> None:
        self._item = item

    def limits(self) -> Iterator[TableRow]:
        """Where nothing limits best effort's CPU, that has a reason too."""
        item = self._item
        written = [limit for limit in item.limits if limit.written]
        yield TableRow("limits written on an untouched node")
        ceiling = (item.ceiling.subject, item.ceiling.name)
        if not any((f"cgroup{limit.cgroup}", limit.file) == ceiling for limit in written):
            yield TableRow(f"  no ceiling of CPU: {_why(item.ceiling)}")
        for cgroup, group in groupby(written, key=lambda limit: limit.cgroup):
            limits = tuple(group)
            yield from self._computed(cgroup, limits) if cgroup == item.root else self._asked_for(cgroup, limits)

    def _computed(self, cgroup: str, limits: tuple[SimulatedLimit, ...]) -> Iterator[TableRow]:
        yield TableRow(f"  {cgroup}")
        for limit in limits:
            yield TableRow(f"    {limit.file}", (self._value(limit),), _why(limit.decision))
            yield from self._terms(limit.decision)

    def _asked_for(self, cgroup: str, limits: tuple[SimulatedLimit, ...]) -> Iterator[TableRow]:
        """One row: most of it follows from what a pod asked for."""
        whose = next((limit.decision.detail for limit in limits if limit.decision.reason is Reason.BATCH_RESOURCES), "")
        yield TableRow(f"  {cgroup}   {whose}".rstrip())
        yield TableRow(f"    {', '.join(map(self._brief, limits))}")

    def _brief(self, limit: SimulatedLimit) -> str:
        reason = limit.decision.reason
        why = "" if reason is Reason.BATCH_RESOURCES else f" ({reason.value})"
        return f"{limit.file} {self._value(limit)}{why}"

    def evictions(self) -> Iterator[TableRow]:
        evictions, needs = self._item.evictions, self._item.needs
        none = "no pod is evicted" if needs else "no pod is evicted: no rule is on"
        yield TableRow("evictions, in order" if evictions else none)
        yield from map(self._eviction, evictions)
        for need in needs:
            yield TableRow(f"  {need.name}", (self._amount(need.value, need.unit),), _why(need))
            yield from self._terms(need)

    def _eviction(self, eviction: SimulatedEviction) -> TableRow:
        decision, notice = eviction.decision, eviction.notice_seconds
        told = "" if notice is None else f"told {notice:.0f} s before; "
        return TableRow(f"  {eviction.pod}", (self._amount(decision.value, decision.unit),), told + _why(decision))

    def _terms(self, decision: Decision) -> Iterator[TableRow]:
        for term in decision.terms:
            amount = ("+" if term.value > 0 else "") + self._amount(term.value, decision.unit)
            yield TableRow(f"      {term.name}", (amount,), term.note)

    def _value(self, limit: SimulatedLimit) -> str:
        return limit.value if isinstance(limit.value, str) else self._amount(limit.value, limit.decision.unit)

    def _amount(self, value: int, unit: Unit) -> str:
        if unit not in _BASES:
            return str(value)
        base, name = _BASES[unit]
        return "unlimited" if value == UNLIMITED else f"{value / (base or self._item.period_us):.3f} {name}"


def _why(decision: Decision) -> str:
    policy = f"policy {decision.policy}" if decision.policy else ""
    return "; ".join(part for part in (policy, words(decision.reason), decision.detail) if part)
