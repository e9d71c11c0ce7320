"""Water-filling in one resource."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.queues.water_fill import Claimant, fill

C = Claimant
EXAMPLES: dict[str, tuple[int, list[Claimant], tuple[int, ...], tuple[int, ...]]] = {
    # capacity, claimants, added, floor
    "what one does not want goes to the others": (100, [C(0, 10), C(0, 50), C(0, 80)], (10, 45, 45), (10, 45, 45)),
    "min 40, weights 1:1:2": (100, [C(40, 99), C(0, 99), C(0, 99, 2)], (55, 15, 30), (40, 20, 40)),
    "weights": (60, [C(0, 99), C(0, 99, 3), C(0, 99, 2)], (10, 30, 20), (10, 30, 20)),
    "a floor that is reached anyhow": (90, [C(10), C(0), C(0)], (37, 27, 26), (30, 30, 30)),
    "enough for all": (100, [C(0, 10), C(5, 20)], (10, 20), (10, 20)),
    "no bound": (10, [C(), C(0, 2)], (8, 2), (8, 2)),
    "nobody": (10, [], (), ()),
    "nothing": (0, [C(0, 5), C(0, 5)], (0, 0), (0, 0)),
    "less than nothing": (-5, [C(0, 5), C(3, 5)], (0, 0), (0, 0)),
    "largest remainder": (10, [C(0, 99, 5), C(0, 99, 3), C(0, 99, 3)], (4, 3, 3), (4, 3, 3)),
    "ties by position": (10, [C(0, 99)] * 4, (3, 3, 2, 2), (3, 3, 2, 2)),
    "bases do not fit: in proportion": (30, [C(40, 99), C(20, 99), C(0, 99)], (20, 10, 0), (20, 10, 0)),
    "a cap below the base": (30, [C(20, 5), C(0, 99)], (20, 10), (20, 10)),
    "weight 0 gets what is left": (30, [C(0, 10), C(0, 99, 0), C(0, 99, 0)], (10, 10, 10), (10, 10, 10)),
    "weight 0 alone": (30, [C(0, 99, 0), C(0, 99, 0)], (15, 15), (15, 15)),
    "weight 0 keeps its base": (30, [C(5, 99, 0), C(0, 99)], (5, 25), (5, 25)),
    "bytes": (3 << 40, [C(0, 1 << 42), C(0, 1 << 42)], (3 << 39, 3 << 39), (3 << 39, 3 << 39)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(name: str) -> None:
    """Whole units, with the base added to the part by weight, or as a floor under it."""
    capacity, claimants, added, floor = EXAMPLES[name]
    assert fill(capacity, claimants) == added
    assert fill(capacity, claimants, added=False) == floor


amounts = st.integers(0, 60)
claims = st.builds(Claimant, base=st.integers(0, 20), cap=st.none() | amounts, weight=st.integers(0, 5))
lists = st.lists(claims, max_size=6)


def cap_of(one: Claimant) -> float:
    return float("inf") if one.cap is None else max(one.cap, one.base)


@given(capacity=st.integers(0, 150), claimants=lists, added=st.booleans())
def test_all_is_shared_out_and_nobody_leaves_its_bounds(capacity: int, claimants: list[Claimant], added: bool) -> None:
    """Σ = min(capacity, Σ caps); each between base and cap wherever the bases fit."""
    got = fill(capacity, claimants, added=added)
    assert sum(got) == min(capacity, sum(map(cap_of, claimants)))
    if sum(one.base for one in claimants) <= capacity:
        assert all(one.base <= x <= cap_of(one) for one, x in zip(claimants, got, strict=True))
    else:
        assert all(x <= one.base for one, x in zip(claimants, got, strict=True))


@given(capacity=st.integers(0, 150), claimants=lists, added=st.booleans())
def test_one_level_explains_it(capacity: int, claimants: list[Claimant], added: bool) -> None:
    """A reference by search: at the level where the clamped parts sum to what is shared out, each is within a unit."""
    weighted = [msg for msg in claimants if msg.weight]
    if len(weighted) < len(claimants) or sum(one.base for one in claimants) > capacity or not claimants:
        return

    def at(level: Fraction) -> list[Fraction]:
        parts = [
            (one.base + one.weight * level) if added else max(Fraction(one.base), one.weight * level)
            for one in claimants
        ]
        return [
            part if one.cap is None else min(part, Fraction(max(one.cap, one.base)))
            for one, part in zip(claimants, parts, strict=True)
        ]

    got = fill(capacity, claimants, added=added)
    low, high = Fraction(0), Fraction(capacity + 1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle)) < sum(got) else (low, middle)
    assert all(abs(x - ideal) < 1 + Fraction(1, 10**6) for x, ideal in zip(got, at(high), strict=True))


@given(capacity=st.integers(0, 150), claimants=st.lists(claims, min_size=1, max_size=6), added=st.booleans())
def test_more_weight_never_gives_less(capacity: int, claimants: list[Claimant], added: bool) -> None:
    """Whole units included: rounding takes nothing from whoever got heavier."""
    first = claimants[0]
    heavier = [Claimant(first.base, first.cap, first.weight + 1), *claimants[1:]]
    assert fill(capacity, heavier, added=added)[0] >= fill(capacity, claimants, added=added)[0]


@given(capacity=st.integers(0, 150), claimants=lists, seed=st.randoms(use_true_random=False))
def test_positions_matter_by_a_unit_at_most(capacity: int, claimants: list[Claimant], seed: object) -> None:
    """The same claims in another order get the same but for units that tie."""
    order = list(range(len(claimants)))
    seed.shuffle(order)  # type: ignore[attr-defined]
    straight = fill(capacity, claimants)
    mixed = fill(capacity, [claimants[at] for at in order])
    assert all(abs(straight[at] - mixed[place]) <= 1 for place, at in enumerate(order))
