"""The brake acts on a surge or on waiting between two ticks, ignores noise, and only ever lowers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.limit.brake import BrakePlan, BrakeSample, Cut, decision, online_us, suffering_cut, wanted_cut
from model.decision import Term
from model.reason import Reason

MS = 1_000_000


def plan(build: Any, **more: Any) -> BrakePlan:
    base = (Term("capacity", 200_000), Term("margin", -10_000), Term("system used", -10_000))
    fields = {"base_terms": base, "base_us": 180_000, "floor_us": 2000, "ceiling_us": 140_000, "deadband_us": 10_000}
    return BrakePlan(knob=build.knobs.quota, **{**fields, **more})


def samples(*online_ms: float, best_effort_ms: float = 50.0) -> tuple[BrakeSample, ...]:
    """One every 100 ms; arguments are online CPU milliseconds used in each interval."""
    found = [BrakeSample(0.0, 0, 0)]
    for used in online_ms:
        last = found[-1]
        best_effort = last.best_effort_ns + int(best_effort_ms * MS)
        kubepods = last.kubepods_ns + int((used + best_effort_ms) * MS)
        found.append(BrakeSample(last.monotonic_seconds + 0.1, kubepods, best_effort))
    return tuple(found)


CASES: dict[str, tuple[tuple[BrakeSample, ...], int, tuple[int, int] | None]] = {
    # online per 100 ms in us over the newest two intervals; ceiling in force; (new value, online)
    "steady load": (samples(40, 40), 140_000, None),
    "noise below 5 % of the node": (samples(40, 55), 140_000, None),
    "half a surge": (samples(40, 100), 140_000, (110_000, 70_000)),
    "a whole surge": (samples(100, 100), 140_000, (80_000, 100_000)),
    "a surge already answered": (samples(100, 100), 85_000, None),
    "more than the node has": (samples(300, 300), 140_000, (2000, 300_000)),
    "from unlimited": (samples(40, 40), -1, (140_000, 40_000)),
    "calm never raises": (samples(0, 0), 20_000, None),
    "one sample": (samples(), 140_000, None),
}


@pytest.mark.parametrize(("seen", "in_force", "expected"), CASES.values(), ids=CASES.keys())
def test_wanted_cut(build: Any, seen: tuple[BrakeSample, ...], in_force: int, expected: tuple[int, int] | None) -> None:
    """Base minus online use, only where that is worth acting before the tick."""
    assert wanted_cut(plan(build), seen, in_force) == expected


SUFFERING: dict[str, tuple[int | None, int, int | None]] = {
    # prepared; ceiling in force; new value
    "prepared and lower": (70_000, 140_000, 70_000),
    "from unlimited": (70_000, -1, 70_000),
    "nothing prepared": (None, 140_000, None),
    "written already": (70_000, 70_000, None),
    "lower already": (70_000, 50_000, None),
    "below the floor": (1000, 140_000, 2000),
    "at the floor": (1000, 2000, None),
}


@pytest.mark.parametrize(("prepared", "in_force", "expected"), SUFFERING.values(), ids=SUFFERING.keys())
def test_suffering_cut(build: Any, prepared: int | None, in_force: int, expected: int | None) -> None:
    """What was prepared, at least the floor, and only where that is lower."""
    assert suffering_cut(plan(build, suffering_us=prepared), in_force) == expected


def test_the_record_of_a_cut_for_waiting_pods(build: Any, terms: Any) -> None:
    """It says why, and what is missing to the sum is its own term."""
    record = decision(Cut(plan(build), 12.5, 1.0, 140_000, 70_000, 40_000, suffering=True))
    assert (record.value, record.reason) == (70_000, Reason.ONLINE_SUFFERING)
    assert terms(record)["online pods wait for CPU"] == -70_000


def test_a_reset_counter_is_no_surge() -> None:
    """Counters that went backwards say nothing."""
    assert online_us((BrakeSample(0, 100, 50), BrakeSample(0.1, 50, 0))) is None
    assert online_us((BrakeSample(1, 0, 0), BrakeSample(1, 5, 0))) is None


def test_the_record_of_a_cut(build: Any, terms: Any) -> None:
    """A cut is explained in the tick's own terms and sums to what was written."""
    record = decision(Cut(plan(build), 12.5, 1.0, 140_000, 80_000, 100_000))
    assert (record.value, record.reason, record.detail) == (80_000, Reason.BRAKE, "cut from 140000 us")
    assert terms(record)["online used"] == -100_000
    floored = decision(Cut(plan(build), 12.5, 1.0, 140_000, 2000, 300_000))
    assert floored.value == 2000 and terms(floored)["floor"] == 122_000


@given(
    used=st.lists(st.floats(0, 500), min_size=0, max_size=6),
    in_force=st.integers(1000, 400_000),
    base=st.integers(0, 400_000),
)
def test_it_only_lowers(build: Any, used: list[float], in_force: int, base: int) -> None:
    """Whatever it sees, the new value is below what holds, and at least the floor."""
    found = wanted_cut(plan(build, base_us=base), samples(*used), in_force)
    if found is not None:
        assert 2000 <= found[0] < in_force
