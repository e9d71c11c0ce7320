"""Cut at once, halve each second, end calmly, and give up where cutting does not help."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.limit.stall_relief import CutRange, Relief, ReliefMemory, StallSignal, relieve
from model.reason import Reason

FLOOR = 2000
NODE = 200_000


def signs(*levels: float) -> tuple[StallSignal, ...]:
    return tuple(StallSignal(f"s{index}", f"s{index} waits", level) for index, level in enumerate(levels))


def play(steps: list[tuple[float, Any, int]], state: ReliefMemory | None = None) -> tuple[ReliefMemory, list[Relief]]:
    """Steps of (time, level or levels, best effort's use)."""
    state, found = state or ReliefMemory(), []
    for at, levels, use in steps:
        told = signs(*(levels if isinstance(levels, tuple) else (levels,)))
        state, relief = relieve(state, told, CutRange(use, FLOOR, NODE), at)
        found.append(relief)
    return state, found


CASES: dict[str, tuple[list[tuple[float, Any, int]], list[int | None]]] = {
    "below the threshold nothing happens": ([(0, 0.99, 80_000)], [None]),
    "at it best effort gets half of what it uses": ([(0, 1.0, 80_000)], [40_000]),
    "halved each second": (
        [(0, 2, 80_000), (1, 2, 40_000), (2, 2, 20_000), (3, 2, 10_000)],
        [40_000, 20_000, 10_000, 5_000],
    ),
    "not more often": ([(0, 2, 80_000), (0.3, 2, 80_000), (0.6, 2, 80_000)], [40_000, 40_000, 40_000]),
    "below what it uses, where that is less than the cut": ([(0, 2, 80_000), (1, 2, 30_000)], [40_000, 15_000]),
    "never below the floor": ([(0, 2, 5_000), (1, 2, 2_500), (2, 2, 2_000)], [2_500, FLOOR, FLOOR]),
    "between half and whole it stands": ([(0, 2, 80_000), (1, 0.6, 40_000), (9, 0.6, 40_000)], [40_000] * 3),
    "it ends after 5 s of calm": (
        [(0, 2, 80_000), (1, 0.4, 40_000), (5, 0, 40_000), (6, 0.4, 40_000)],
        [40_000, 40_000, 40_000, None],
    ),
    "calm that is interrupted starts again": (
        [(0, 2, 80_000), (1, 0, 40_000), (5, 0.5, 40_000), (6, 0, 40_000), (10, 0, 40_000), (11, 0, 40_000)],
        [40_000] * 5 + [None],
    ),
    "below the threshold for 30 s ends it too": (
        [(0, 2, 80_000), (1, 0.6, 40_000), (30, 0.9, 40_000), (31, 0.9, 40_000)],
        [40_000, 40_000, 40_000, None],
    ),
    "no signs at all are calm": ([(0, 2, 80_000), (1, (), 40_000), (6, (), 40_000)], [40_000, 40_000, None]),
    "one sign among several is enough": ([(0, (0.1, 3, 0.2), 80_000)], [40_000]),
}


@pytest.mark.parametrize(("steps", "caps"), CASES.values(), ids=CASES.keys())
def test_cuts(steps: list[tuple[float, Any, int]], caps: list[int | None]) -> None:
    """What best effort gets at most after each step."""
    assert [relief.cap_us for relief in play(steps)[1]] == caps


def test_reasons_and_notes() -> None:
    """Why nothing is raised, and who waits, the highest first."""
    _, (on, off, over) = play([(0, (1.5, 3, 0.1), 80_000), (1, (0.1, 0, 0), 40_000), (7, 0, 40_000)])
    assert (on.reason, on.note) == (Reason.ONLINE_SUFFERING, "s1 waits; s0 waits")
    assert (off.reason, off.note) == (Reason.ONLINE_RECOVERING, "not any more")
    assert over == Relief(first_cut_us=20_000)


def test_the_first_cut_is_prepared() -> None:
    """For the brake: half of what is used now; during a cut the cut itself, so that it is not halved more often."""
    _, (calm, cut) = play([(0, 0, 80_000), (1, 2, 80_000)])
    assert (calm.first_cut_us, cut.first_cut_us) == (40_000, 40_000)
    assert play([(0, 0, 1_000)])[1][0].first_cut_us == FLOOR


def hopeless(level: float, seconds: int, use: int = 1_000) -> list[tuple[float, Any, int]]:
    return [(float(second), level, use) for second in range(seconds + 1)]


def test_cutting_that_does_not_help_ends() -> None:
    """After 10 s in which best effort was powerless; the sign is named as long as it is on."""
    state, found = play(hopeless(2, 10))
    assert [relief.cap_us for relief in found] == [FLOOR] * 10 + [None]
    assert found[-1].disregarded == "a cut does not help: s0 waits" and state.raised["s0"].level == 2


def test_powerless_counts_from_the_floor() -> None:
    """While best effort still has something to give, it is no proof."""
    steps = [(float(second), 2, 80_000 >> second) for second in range(6)]
    state, _ = play(steps)
    assert state.powerless_seconds == 2.0  # from 3 on: 5,000 of 200,000 us are less than 5 %
    state, found = play([(float(second), 2, 3_000) for second in range(6, 14)], state)
    assert found[-2].cap_us == FLOOR and found[-1].cap_us is None


RAISED: dict[str, tuple[list[tuple[float, Any, int]], int | None]] = {
    "as not_off as before": ([(20, 2, 80_000)], None),
    "not yet twice as not_off": ([(20, 3.9, 80_000)], None),
    "twice as not_off": ([(20, 4.0, 80_000)], 40_000),
    "after it was off for 5 s": ([(20, 0.4, 80_000), (25, 0, 80_000), (26, 1, 80_000)], 40_000),
    "after it was gone for 5 s": ([(20, (), 80_000), (25, (), 80_000), (26, 1, 80_000)], 40_000),
    "after a lull": ([(20, 0.4, 80_000), (24, 0, 80_000), (24.5, 2, 80_000)], None),
    "after two lulls": ([(20, 0, 80_000), (22, 2, 80_000), (23, 0, 80_000), (27, 2, 80_000)], None),
    "after 5 min": ([(309, 2, 80_000), (311, 2, 80_000)], 40_000),
    "another sign": ([(20, (2, 1), 80_000)], 40_000),
}


@pytest.mark.parametrize(("steps", "cap"), RAISED.values(), ids=RAISED.keys())
def test_what_is_heard_of_a_disregarded_sign(steps: list[tuple[float, Any, int]], cap: int | None) -> None:
    """Best effort may come back, and is cut again when it makes things worse."""
    state, _ = play(hopeless(2, 10))
    assert play(steps, state)[1][-1].cap_us == cap


@pytest.mark.parametrize(("on", "off"), [(1, 4), (2, 2), (2, 4), (5, 4), (9, 4)])
def test_waiting_in_bursts_that_a_cut_does_not_help(on: int, off: int) -> None:
    """The time at the floor adds up over the lulls of one cut: best effort is let go for most of an hour."""
    state, capped, cap = ReliefMemory(), 0, None
    for second in range(3600):
        level = 1.5 if second % (on + off) < on else 0.0
        state, relief = relieve(state, signs(level), CutRange(cap or NODE // 2, FLOOR, NODE), float(second))
        cap = relief.cap_us
        capped += cap is not None
    assert 10 < capped < 360


def test_time_that_best_effort_cannot_be_blamed_for_is_not_carried_over() -> None:
    """A cut that ended calmly tells nothing of the next one."""
    state, found = play([*hopeless(2, 8), (9, 0, 1_000), (14, 0, 1_000)])
    assert state.powerless_seconds == 0.0 and found[-1].cap_us is None
    assert play([(20 + second, 2, 1_000) for second in range(10)], state)[1][-1].cap_us == FLOOR


def test_each_futile_try_is_twice_as_long_after_the_one_before() -> None:
    """A pod that its own limit throttles for ever costs best effort some seconds an hour; once calm, all begins again."""
    state, cuts, cut = ReliefMemory(), [], False
    for second in range(20_000):
        state, (relief,) = play([(float(second), 2, 80_000 if not cut else 1_000)], state)
        if (relief.cap_us is not None) != cut:
            cut = not cut
            cuts += [second] if cut else []
    pauses = [later - earlier for earlier, later in pairwise(cuts)]
    assert [round(pause, -2) for pause in pauses] == [300, 600, 1200, 2400, 3600, 3600, 3600, 3600]
    state, _ = play([(20_000, 0, 80_000), (20_005, 0, 80_000)], state)
    state, _ = play([(20_006.0 + second, 2, 1_000) for second in range(11)], state)
    assert state.raised["s0"].for_seconds == 300


def test_a_cut_by_the_brake_is_kept() -> None:
    """Until signs are calm; a sign that comes on confirms it, and halving goes on from there."""
    state, relief = relieve(ReliefMemory(), signs(0.2), CutRange(80_000, FLOOR, NODE), 0.0, cut_us=30_000)
    assert (relief.cap_us, relief.reason, state.unconfirmed) == (30_000, Reason.ONLINE_RECOVERING, True)
    state, found = play([(1, 2, 30_000), (2, 0, 15_000), (8, 0, 15_000)], state)
    assert [r.cap_us for r in found] == [15_000, 15_000, None] and found[-1].first_cut_us == 7_500


def test_a_brake_that_cuts_for_noise_is_not_asked() -> None:
    """Nothing came on after its cut: for 5 min it has nothing prepared."""
    state, _ = relieve(ReliefMemory(), signs(0.2), CutRange(80_000, FLOOR, NODE), 0.0, cut_us=30_000)
    state, found = play([(5, 0.2, 30_000), (10, 0.2, 80_000), (304, 0, 80_000), (306, 0, 80_000)], state)
    assert [r.cap_us for r in found] == [None] * 4
    assert [r.first_cut_us for r in found] == [None, None, None, 40_000]


@given(st.lists(st.tuples(st.floats(0.1, 3), st.floats(0, 5), st.integers(0, NODE)), max_size=40))
def test_always(steps: list[tuple[float, float, int]]) -> None:
    """A cut never grows while it lasts and never goes below the floor; without one nothing is held."""
    now, state, last = 0.0, ReliefMemory(), None
    for pause, level, use in steps:
        now += pause
        state, relief = relieve(state, signs(level), CutRange(use, FLOOR, NODE), now)
        assert (relief.cap_us is None) == (relief.reason is None)
        assert relief.cap_us is None or relief.cap_us >= FLOOR
        assert None in (last, relief.cap_us) or relief.cap_us <= last  # type: ignore[operator]
        last = relief.cap_us


def pulses(on: int, off: int, seconds: int, *, own_limit: bool, beside: float = 0.0) -> tuple[float, ReliefMemory]:
    """How much of the time best effort was cut, for a pod that shows twice the threshold for `on` seconds of each."""
    state, cut = ReliefMemory(), 0
    for second in range(seconds):
        level = 2.0 if second % (on + off) < on else 0.0
        told = (StallSignal("throttled a", "a throttled", level, own_limit=own_limit), *signs(beside * level))
        state, relief = relieve(state, told, CutRange(80_000, FLOOR, NODE), float(second))
        cut += relief.cap_us is not None
    return cut / seconds, state


@pytest.mark.parametrize(("on", "off"), [(8, 6), (3, 6), (10, 6), (20, 10)])
def test_a_pod_whose_own_limit_throttles_it_in_pulses(on: int, off: int) -> None:
    """No cut lasts long enough to be futile: after five of them its sign is raised, through its lulls, too."""
    assert pulses(on, off, 45, own_limit=True)[0] > 0.6
    assert pulses(on, off, 3600, own_limit=True)[0] < 0.2


def test_pulses_of_who_waits_are_answered_each_time() -> None:
    """Best effort may be what it waits for; so it is where somebody waits beside a pod that its limit throttles."""
    assert pulses(8, 6, 3600, own_limit=False)[0] > 0.8
    share, state = pulses(8, 6, 3600, own_limit=True, beside=1.0)
    assert share > 0.8 and state.raised == {}


def test_pods_whose_own_limits_throttle_them_in_turn() -> None:
    """Each begins few cuts, and all together no more than one would."""
    state, cut = ReliefMemory(), 0
    for second in range(3600):
        told = (StallSignal(f"throttled {second // 14 % 10}", "", 2.0 if second % 14 < 8 else 0.0, own_limit=True),)
        state, relief = relieve(state, told, CutRange(80_000, FLOOR, NODE), float(second))
        cut += relief.cap_us is not None
    assert cut / 3600 < 0.2
