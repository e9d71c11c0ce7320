"""What is written to the Node: normalised, less third-party allocations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.lend.prepare import origin, prepared, prepared_in_zone
from model.decision import Decision, Term, Unit
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY, ResourceVector

NOTHING = ResourceVector()


def decision(name: str, value: int) -> Decision:
    unit = Unit.MILLI_CPU if name.endswith("cpu") else Unit.BYTES
    return Decision("node/n", name, value, unit, Reason.COMPUTED, (Term("capacity", value),), "usage", 7.0)


ALL = tuple(decision(name, 1000) for name in (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY))


@pytest.mark.parametrize(
    ("value", "ratio", "expected"),
    [
        (1000, None, 1000),
        (1000, 1.0, 1000),
        (1000, 0.5, 1000),
        (15_000, 1.2, 18_000),
        (0, 2.0, 0),
        # 1003 x 1.25 = 1253.75: a quantity of 1253750 thousandths, which is read as 1254
        (1003, 1.25, 1254),
        # 1000 x 1.1 = 1100.0000000000001 in floating point, cut at the thousandth
        (1000, 1.1, 1100),
        # 50 x 1.15 = 57.49999… in floating point: cut at 57.499, read as 58
        (50, 1.15, 58),
        (20_000, 5.0, 100_000),
    ],
)
def test_batch_cpu_is_multiplied_by_a_ratio_above_one(value: int, ratio: float | None, expected: int) -> None:
    """Koordinator's MultiplyMilliQuant and Quantity.Value."""
    (found,) = prepared((decision(BATCH_CPU, value),), ratio, NOTHING)
    assert found.value == expected


def test_nothing_else_is_multiplied() -> None:
    """Memory has no speed, and mid is written as computed."""
    assert [found.value for found in prepared(ALL, 2.0, NOTHING)] == [2000, 1000, 1000, 1000]


def test_third_parties_are_taken_off_after_normalization() -> None:
    """2000 - 1500; 1000 - 1200 is 0; allocations of other resources mean nothing here."""
    third = ResourceVector({BATCH_CPU: 1500, BATCH_MEMORY: 1200, MID_CPU: 100, "cpu": 100})
    found = prepared(ALL, 2.0, third)
    assert [one.value for one in found] == [500, 0, 1000, 1000]
    assert [[(term.name, term.value) for term in one.terms] for one in found[:2]] == [
        [("reclaimable", 1000), ("CPU normalization", 1000), ("third-party allocations", -1500)],
        [("reclaimable", 1000), ("third-party allocations", -1000)],
    ]
    assert found[1].terms[1].note == "1200 given away by other schedulers"
    assert origin(ALL, 2.0, third) == ResourceVector({BATCH_CPU: 2000, BATCH_MEMORY: 1000})


def test_without_third_parties_there_is_no_origin() -> None:
    """A Node that does not speak of them; one that says they took nothing is told what they could take."""
    assert origin(ALL, 2.0, None) is None
    assert origin(ALL, 2.0, NOTHING) == ResourceVector({BATCH_CPU: 2000, BATCH_MEMORY: 1000})


@pytest.mark.parametrize(
    ("value", "ratio", "expected"),
    # 26666 x 1.13 = 30132.58; 1003 x 1.25 = 1253.75
    [(26_666, 1.13, 30_132), (1003, 1.25, 1253), (1000, 2.0, 2000), (1000, 1.0, 1000), (1000, None, 1000)],
)
def test_a_zone_is_cut_to_whole_units(value: int, ratio: float | None, expected: int) -> None:
    """Where Koordinator's row holds thousandths, one that was rounded up would hold more."""
    (cpu, memory) = prepared_in_zone((decision(BATCH_CPU, value), decision(BATCH_MEMORY, value)), ratio)
    assert (cpu.value, memory.value, cpu.policy) == (expected, value, "prepared")
    assert sum(term.value for term in cpu.terms) == expected


def test_a_prepared_decision_keeps_whose_it_is() -> None:
    """Subject, name, unit, time and reason stay; the policy says which step it is."""
    (found,) = prepared(ALL[:1], None, NOTHING)
    assert (found.subject, found.name, found.unit, found.at_seconds) == ("node/n", BATCH_CPU, Unit.MILLI_CPU, 7.0)
    assert (found.reason, found.policy) == (Reason.COMPUTED, "prepared")


@given(st.integers(0, 1_000_000), st.integers(0, 2_000_000), st.one_of(st.none(), st.floats(1.0, 5.0)))
def test_third_parties_and_batch_never_exceed_the_whole(value: int, given_away: int, ratio: float | None) -> None:
    """prepared <= what third parties leave, and never negative."""
    third = ResourceVector({BATCH_CPU: given_away})
    (found,) = prepared((decision(BATCH_CPU, value),), ratio, third)
    (whole,) = prepared((decision(BATCH_CPU, value),), ratio, NOTHING)
    assert found.value == max(whole.value - given_away, 0)
    assert value <= whole.value <= value * (ratio or 1) + 1
