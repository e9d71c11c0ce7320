"""How best effort is limited and who is evicted, for people: of what was computed a line a term, and the sum first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from agent.core.evict.order import Order
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import PERIOD_US, UNLIMITED
from cli.simulated import Simulated
from model.decision import Decision, Unit
from model.reason import Reason, words

_SCALES = {Unit.MICROSECONDS: (PERIOD_US, "CPUs"), Unit.MILLI_CPU: (1000, "CPUs"), Unit.BYTES: (1 << 30, "GiB")}
_NAME, _CELL = 34, 21


def table(item: Simulated) -> str:
    """Several lines; CPU in CPUs, memory in GiB rounded to thousandths."""
    return "\n".join([*_limits(item), "", *_evictions(item)])


def _limits(item: Simulated) -> Iterator[str]:
    """Where nothing limits best effort's CPU, that has a reason too."""
    written = [limit for limit in item.limits if limit.knob in item.written]
    yield "limits written on an untouched node"
    if not any((limit.knob.subject, limit.knob.file) == (item.ceiling.subject, item.ceiling.name) for limit in written):
        yield f"  no ceiling of CPU: {_why(item.ceiling)}"
    for cgroup, group in groupby(written, key=lambda limit: limit.knob.cgroup):
        limits = tuple(group)
        yield from _computed(cgroup, limits) if cgroup == item.root else _asked_for(cgroup, limits)


def _computed(cgroup: str, limits: tuple[Limit, ...]) -> Iterator[str]:
    yield f"  {cgroup}"
    for limit in limits:
        yield _row(f"    {limit.knob.file}", _held(limit), _why(limit.decision))
        yield from _terms(limit.decision)


def _asked_for(cgroup: str, limits: tuple[Limit, ...]) -> Iterator[str]:
    """One line: most of it follows from what a pod asked for."""
    whose = next((limit.decision.detail for limit in limits if limit.decision.reason is Reason.BATCH_RESOURCES), "")
    yield f"  {cgroup}   {whose}".rstrip()
    yield f"    {', '.join(map(_brief, limits))}"


def _brief(limit: Limit) -> str:
    reason = limit.decision.reason
    return f"{limit.knob.file} {_held(limit)}" + ("" if reason is Reason.BATCH_RESOURCES else f" ({reason.value})")


def _evictions(item: Simulated) -> Iterator[str]:
    orders, needs = item.evictions.orders, item.evictions.needs
    yield "evictions, in order" if orders else "no pod is evicted" if needs else "no pod is evicted: no rule is on"
    yield from (_order(order, item.facts.now) for order in orders)
    for need in needs:
        yield _row(f"  {need.name}", _amount(need.value, need.unit), _why(need))
        yield from _terms(need)


def _order(order: Order, now: float) -> str:
    decision, deadline = order.decision, order.deadline_seconds
    notice = "" if deadline is None else f"told {deadline - now:.0f} s before; "
    return _row(f"  {order.namespace}/{order.name}", _amount(decision.value, decision.unit), notice + _why(decision))


def _why(decision: Decision) -> str:
    policy = f"policy {decision.policy}" if decision.policy else ""
    return "; ".join(part for part in (policy, words(decision.reason), decision.detail) if part)


def _terms(decision: Decision) -> Iterator[str]:
    for term in decision.terms:
        yield _row(
            f"      {term.name}", ("+" if term.value > 0 else "") + _amount(term.value, decision.unit), term.note
        )


def _held(limit: Limit) -> str:
    return limit.value if isinstance(limit.value, str) else _amount(limit.value, limit.decision.unit)


def _amount(value: int, unit: Unit) -> str:
    if unit not in _SCALES:
        return str(value)
    scale, name = _SCALES[unit]
    return "unlimited" if value == UNLIMITED else f"{value / scale:.3f} {name}"


def _row(name: str, cell: str, note: str) -> str:
    return f"{name:<{_NAME}} {cell:>{_CELL}}   {note}".rstrip()
