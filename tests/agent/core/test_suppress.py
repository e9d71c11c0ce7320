"""The quota ceiling: cut at once, raised by steps, never over what somebody tighter wrote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.core.knobs import PERIOD_US, UNLIMITED, Knobs
from agent.core.layout import Layout
from agent.core.observation import Absence, Missing
from agent.core.suppress import NodeSize, Standing, fixed, quota_ceiling
from model.decision import Decision
from model.reason import Reason
from model.strategy import SuppressStrategy

STRATEGY = SuppressStrategy()
OFF = SuppressStrategy(enable=False)
UNREADABLE = Missing("/cpu.cfs_quota_us", Absence.UNREADABLE, "garbage")


def ceiling(build: Any, current: Any, *, strategy: SuppressStrategy = STRATEGY, **more: Any) -> Decision:
    known = ("foreign_cap", "loosened", "ours", "braked", "unsettled", "elapsed_seconds")
    standing = Standing(current, **{"elapsed_seconds": 1.0, **{key: more.pop(key) for key in known if key in more}})
    size = more.pop("size") if "size" in more else NodeSize(2000)
    usage = more["usage"] if "usage" in more else build.usage(**more)
    return quota_ceiling(build.knobs.quota, size, usage, strategy, standing, 100.0).decision


# 2 CPUs: 200,000 us a period, 5 % margin 10,000, system 100m = 10,000, online 400m = 40,000 → 140,000
CASES: dict[str, tuple[int, dict[str, Any], int, Reason]] = {
    "from unlimited the formula applies at once": (UNLIMITED, {}, 140_000, Reason.QUOTA_LOWERED),
    "lowering is at once": (190_000, {}, 140_000, Reason.QUOTA_LOWERED),
    "less than 1 % lower is not worth a write": (141_900, {}, 141_900, Reason.BELOW_DEADBAND),
    "exactly 1 % lower is": (142_000, {}, 140_000, Reason.QUOTA_LOWERED),
    "raising goes by a tenth of the node": (100_000, {}, 120_000, Reason.QUOTA_RAISED),
    "a decision half a second later takes half a step": (
        100_000,
        {"elapsed_seconds": 0.5},
        110_000,
        Reason.QUOTA_RAISED,
    ),
    "a late decision takes one step": (20_000, {"elapsed_seconds": 3.0}, 40_000, Reason.QUOTA_RAISED),
    "at the same moment nothing is raised": (100_000, {"elapsed_seconds": 0.0}, 100_000, Reason.BELOW_DEADBAND),
    "another clock raises nothing": (100_000, {"elapsed_seconds": -50.0}, 100_000, Reason.BELOW_DEADBAND),
    "lowering takes no time": (190_000, {"elapsed_seconds": 0.0}, 140_000, Reason.QUOTA_LOWERED),
    "the last step ends at the formula": (130_000, {}, 140_000, Reason.QUOTA_RAISED),
    "less than 1 % higher is not worth a write": (138_100, {}, 138_100, Reason.BELOW_DEADBAND),
    "after a brake cut nothing is raised": (100_000, {"braked": True}, 100_000, Reason.BRAKE),
    "before the live window is full nothing is raised": (
        100_000,
        {"live_seconds": 5.0},
        100_000,
        Reason.WINDOW_FILLING,
    ),
    "with settings unread nothing is raised": (100_000, {"unsettled": True}, 100_000, Reason.CONFIGURATION_INVALID),
    "with settings unread it is lowered": (190_000, {"unsettled": True}, 140_000, Reason.QUOTA_LOWERED),
    "reserved counts where it is larger": (UNLIMITED, {"size": NodeSize(2000, 300)}, 120_000, Reason.QUOTA_LOWERED),
    "a young agent lowers all the same": (190_000, {"live_seconds": 1.0}, 140_000, Reason.QUOTA_LOWERED),
    "a tighter foreign value is respected": (120_000, {"foreign_cap": 120_000}, 120_000, Reason.FOREIGN_WRITER_TIGHTER),
    "we may go below a foreign value": (190_000, {"foreign_cap": 150_000}, 140_000, Reason.QUOTA_LOWERED),
    "a loosened value is put back": (140_000, {"loosened": True}, 140_000, Reason.FOREIGN_WRITER_LOOSENED),
}


@pytest.mark.parametrize(("current", "more", "expected", "reason"), CASES.values(), ids=CASES.keys())
def test_ceiling(build: Any, current: int, more: dict[str, Any], expected: int, reason: Reason) -> None:
    """One decision a case, worked by hand."""
    found = ceiling(build, current, **more)
    assert (found.value, found.reason) == (expected, reason)


def test_terms_name_every_part(build: Any, terms: Any) -> None:
    """What kubectl-minded people see with `sublet explain limit`."""
    assert terms(ceiling(build, UNLIMITED)) == {
        "capacity": 200_000,
        "margin": -10_000,
        "system used": -10_000,
        "online used": -40_000,
    }
    assert terms(ceiling(build, 100_000))["growth limited to a step"] == -20_000


def test_raising_looks_at_the_live_window_too(build: Any) -> None:
    """One quiet second does not raise the ceiling: 10 s average 900m online leaves 90,000."""
    found = ceiling(build, 100_000, online=build.averages(400, 0, live=900))
    assert (found.value, found.reason) == (100_000, Reason.BELOW_DEADBAND)


def test_floor(build: Any, terms: Any) -> None:
    """Best effort always keeps 0.02 CPU, or cpuSuppressMinPercent of the node."""
    busy = build.averages(5000)
    assert ceiling(build, UNLIMITED, online=busy).value == 2000
    least = SuppressStrategy(min_pct=10)
    assert ceiling(build, UNLIMITED, online=busy, strategy=least).value == 20_000
    assert ceiling(build, 2500, online=busy).value == 2000


@pytest.mark.parametrize(
    ("change", "value", "reason"),
    [
        ({"usage": None}, 77_000, Reason.NODE_METRICS_MISSING),
        ({"size": None}, 77_000, Reason.NODE_METRICS_MISSING),
        ({"strategy": OFF, "ours": True}, UNLIMITED, Reason.SUPPRESSION_DISABLED),
        ({"strategy": OFF}, 77_000, Reason.SUPPRESSION_DISABLED),
        ({"strategy": OFF, "ours": True, "foreign_cap": 77_000}, 77_000, Reason.SUPPRESSION_DISABLED),
    ],
)
def test_without_facts_the_value_stays(build: Any, change: dict[str, Any], value: int, reason: Reason) -> None:
    """Not knowing never raises; switching off on purpose lifts our own value and nobody else's."""
    found = ceiling(build, 77_000, **change)
    assert (found.value, found.reason) == (value, reason)


def test_unreadable_knob_says_so(build: Any) -> None:
    """The file and the kernel's words are in the record."""
    found = ceiling(build, UNREADABLE)
    assert found.reason is Reason.KNOB_UNREADABLE and "garbage" in found.detail


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    current=st.one_of(st.just(UNLIMITED), st.integers(1000, 400_000)),
    online=st.integers(0, 5000),
    more=st.integers(0, 3000),
    braked=st.booleans(),
)
def test_more_online_use_never_raises(build: Any, current: int, online: int, more: int, braked: bool) -> None:
    """Monotone in online use, at least the floor, and a step bounds every rise."""
    high = ceiling(build, current, online=build.averages(online), braked=braked).value
    low = ceiling(build, current, online=build.averages(online + more), braked=braked).value
    assert 1000 <= low <= high
    if current != UNLIMITED:
        assert high <= max(current, min(current + 20_000, 190_000))


def test_a_policy_we_do_not_have_is_said(build: Any) -> None:
    """The decision names what is applied, and what was asked for."""
    found = ceiling(build, UNLIMITED, strategy=SuppressStrategy(policy="cpuset"))
    assert (found.policy, found.detail) == ("adaptive", "cpuset was asked for, this version has adaptive")


@pytest.mark.parametrize(
    ("current", "reason"),
    [(2, Reason.WEIGHT_HELD), (1024, Reason.FOREIGN_WRITER_LOOSENED), (UNREADABLE, Reason.KNOB_UNREADABLE)],
)
def test_weight(build: Any, current: Any, reason: Reason) -> None:
    """Shares stay at the kernel's minimum whoever raised them."""
    found = fixed(build.knobs.fixed[1], current, 1.0)
    assert found.reason is reason and found.value == (0 if current is UNREADABLE else 2)


@pytest.mark.parametrize(
    ("current", "value", "reason"),
    [(1, 1, Reason.WEIGHT_HELD), (100, 1, Reason.FOREIGN_WRITER_LOOSENED), (0, 0, Reason.FOREIGN_WRITER_TIGHTER)],
)
def test_weight_of_v2(current: int, value: int, reason: Reason) -> None:
    """0 is what cpu.idle shows: it holds best effort lower than any weight, and the kernel takes none meanwhile."""
    found = fixed(Knobs.of(Layout(version=2)).fixed[0], current, 1.0)
    assert (found.value, found.reason) == (value, reason)


@pytest.mark.parametrize(
    ("current", "reason"), [(PERIOD_US, Reason.PERIOD_HELD), (10_000, Reason.FOREIGN_WRITER_LOOSENED)]
)
def test_period(build: Any, current: int, reason: Reason) -> None:
    """A tenth of the period would make ten times the CPU of the same quota."""
    found = fixed(build.knobs.fixed[0], current, 1.0)
    assert (found.value, found.reason) == (100_000, reason)
