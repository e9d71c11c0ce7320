"""A tick's limits: quota, period, weight and the brake's plan belong together."""

from __future__ import annotations

from typing import Any

from agent.core.limits import Limits, Memory, decide_limits
from agent.core.observation import Absence, KnobReading, Missing
from agent.core.plan import KnobStanding
from model.reason import Reason
from model.strategy import SuppressStrategy


def decided(build: Any, seen: Any, usage: Any, memory: Memory | None = None, **strategy: Any) -> tuple[Memory, Limits]:
    return decide_limits(memory or Memory(), build.knobs, seen, usage, SuppressStrategy(**strategy))


def test_the_brake_defends_what_was_decided(build: Any) -> None:
    """Base is the ceiling before online use; the deadband is 5 % of the node."""
    seen = build.seen(10, knobs=build.readings(weight=1024, period=50_000))
    _, limits = decided(build, seen, build.usage())
    assert {d.name: d.value for d in limits.decisions.values()} == {
        "cpu.cfs_quota_us": 140_000,
        "cpu.cfs_period_us": 100_000,
        "cpu.shares": 2,
    }
    assert limits.brake is not None
    assert (limits.brake.base_us, limits.brake.ceiling_us, limits.brake.deadband_us) == (180_000, 140_000, 10_000)


def test_one_tick_without_usage_keeps_the_brake(build: Any) -> None:
    """A statistic that is missing for a second does not leave a surge unanswered; switching off does disarm."""
    memory, first = decided(build, build.seen(10), build.usage())
    blind = build.seen(11, knobs=build.readings(KnobReading(90_000, 90_000)))
    memory, held = decided(build, blind, None, memory)
    assert first.brake is not None and held.brake is not None
    assert (held.brake.base_us, held.brake.ceiling_us) == (first.brake.base_us, 90_000)
    assert decided(build, blind, None, memory, enable=False)[1].brake is None
    assert decided(build, build.seen(), None)[1].brake is None


def test_without_a_node_object_the_ceiling_still_holds(build: Any) -> None:
    """The kernel's own CPU count stands in before the API server was read, the last size afterwards."""
    _, limits = decided(build, build.seen(10, node=None), build.usage())
    assert limits.decisions[build.knobs.quota].value == 140_000 and limits.brake is not None
    memory, _ = decided(build, build.seen(10, node=build.node(4000, reserved=500)), build.usage())
    _, limits = decided(build, build.seen(11, node=None), build.usage(), memory)
    assert limits.decisions[build.knobs.quota].value == 400_000 - 20_000 - 50_000 - 40_000


def test_no_raise_within_five_seconds_of_a_cut(build: Any) -> None:
    """The tick that the brake woke does not undo the brake."""
    readings = build.readings(KnobReading(60_000, 60_000))
    for at, reason in ((14.9, Reason.BRAKE), (15.1, Reason.QUOTA_RAISED)):
        seen = build.seen(at, knobs=readings, brake_cuts=1, last_cut_monotonic=10.0)
        _, limits = decided(build, seen, build.usage())
        assert limits.decisions[build.knobs.quota].reason is reason


def test_unsettled_settings_raise_nothing(build: Any) -> None:
    """The NodeSLO that could not be read may ask for less than the default."""
    seen = build.seen(10, knobs=build.readings(KnobReading(60_000, 60_000)))
    _, limits = decide_limits(Memory(), build.knobs, seen, build.usage(), SuppressStrategy(), unsettled=True)
    found = limits.decisions[build.knobs.quota]
    assert (found.value, found.reason) == (60_000, Reason.CONFIGURATION_INVALID)


def test_a_foreign_cap_is_remembered(build: Any) -> None:
    """From the tick that saw it on."""
    seen = build.seen(10, knobs=build.readings(KnobReading(60_000, 90_000)))
    memory, _ = decided(build, seen, build.usage())
    assert memory.quota == KnobStanding(60_000)


def test_unreadable_knobs_are_reported_not_guessed(build: Any) -> None:
    """Each knob on its own: the others still work."""
    gone = KnobReading(Missing("/q", Absence.UNREADABLE, "Input/output error"))
    _, limits = decided(build, build.seen(knobs=build.readings(gone)), build.usage())
    assert limits.decisions[build.knobs.quota].reason is Reason.KNOB_UNREADABLE
    assert limits.decisions[build.knobs.weight].reason is Reason.WEIGHT_HELD and limits.brake is None
