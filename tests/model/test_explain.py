"""A decision in words: amounts with their units, one line, and a table of its terms."""

from __future__ import annotations

import pytest

from model.decision import Decision, Term, Unit
from model.explain import OFFERED, UNLIMITED, amount, lines, sentence, text
from model.reason import Reason, words

GIB = 1 << 30


@pytest.mark.parametrize(
    ("value", "unit", "told"),
    [
        (1500, Unit.MILLI_CPU, "1500m"),
        (-1, Unit.MILLI_CPU, "-1m"),
        (2 * GIB, Unit.BYTES, "2Gi"),
        (15762598695, Unit.BYTES, "~14.68Gi"),
        (1001, Unit.BYTES, "1001"),
        (95000, Unit.MICROSECONDS, "95000us"),
        (3, Unit.NODES, "3 nodes"),
        (UNLIMITED, Unit.BYTES, "unlimited"),
        (UNLIMITED, Unit.MICROSECONDS, "unlimited"),
        (UNLIMITED, Unit.PIDS, "unlimited"),
    ],
)
def test_amount(value: int, unit: Unit, told: str) -> None:
    """As a person reads it; rounded amounts say so."""
    assert amount(value, unit) == told


TERMS = (Term("capacity", 5, "of the node"), Term("margin", -3), Term("nothing", 0))
SHARES = Decision("cgroup/x", "cpu.shares", 2, Unit.SHARES, Reason.COMPUTED, TERMS)
WHY = words(Reason.COMPUTED)


def replaced(**changes: object) -> Decision:
    fields = {name: getattr(SHARES, name) for name in SHARES.__struct_fields__} | changes
    return Decision(**fields)


def test_one_line() -> None:
    """Signed terms that sum to the value, those of nothing left out; what follows it at the end."""
    assert sentence(SHARES) == f"cpu.shares of cgroup/x = 2 shares: {WHY} [capacity 5 - margin 3]"
    assert sentence(replaced(terms=(Term("less", -2),), value=-2)).endswith("[- less 2]")
    assert (
        sentence(replaced(terms=(), value=0, detail="why else"))
        == f"cpu.shares of cgroup/x = 0 shares: {WHY}; why else"
    )
    assert sentence(replaced(policy=OFFERED)).startswith("cpu.shares offered by cgroup/x")


def test_a_table() -> None:
    """Head, terms, sum, reason; notes beside their terms."""
    head, *rows, total, why = lines(replaced(policy="p", detail="d"))
    assert head == "cgroup/x  cpu.shares  (policy p)"
    assert [row.split() for row in rows] == [
        ["+", "capacity", "5", "of", "the", "node"],
        ["-", "margin", "3"],
        ["nothing", "0"],
    ]
    assert total.split() == ["=", "value", "2", "2", "shares"]
    assert why == f"  {Reason.COMPUTED.value}: {WHY}; d"
    assert len({row.index(number) + len(number) for row, number in zip(rows, "530", strict=True)}) == 1


def test_no_limit_is_no_sum() -> None:
    """Its terms are not told."""
    free = replaced(value=UNLIMITED, unit=Unit.BYTES, terms=(Term("x", UNLIMITED),))
    assert lines(free)[1] == "  = unlimited" and len(lines(free)) == 3
    limited = replaced(value=GIB, unit=Unit.BYTES, terms=(Term("x", GIB),))
    assert len(lines(limited)) == 4 and sentence(limited).endswith(f"[x {GIB}]")
    assert sentence(free) == f"cpu.shares of cgroup/x = unlimited: {WHY}"


def test_several() -> None:
    """An empty line between two."""
    assert text([SHARES, SHARES]) == "\n".join([*lines(SHARES), "", *lines(SHARES)])
    assert text([]) == ""
