"""A tick's limits: quota, period, weight and the brake's plan belong together."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.knobs import Knobs
from agent.core.layout import Layout
from agent.core.limits import Limits, Memory, decide_limits
from agent.core.observation import Absence, KnobReading, Missing
from agent.core.plan import KnobStanding
from model.decision import Unit
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


def test_the_ceiling_rises_by_a_tenth_of_the_node_a_second(build: Any) -> None:
    """However often something wakes the tick: 2 CPUs are 200,000 us, so at most 20,000 a second."""
    quota, memory, found = 20_000, Memory(monotonic_seconds=9.0), []
    for at in (10.0, 10.125, 10.25, 10.5, 10.75, 11.0, 12.0):
        seen = build.seen(at, knobs=build.readings(KnobReading(quota, quota)))
        memory, limits = decided(build, seen, build.usage(), memory)
        quota = limits.decisions[build.knobs.quota].value
        found.append(quota)
    assert found == [40_000, 42_500, 45_000, 50_000, 55_000, 60_000, 80_000]


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
    assert limits.decisions[build.weight].reason is Reason.WEIGHT_HELD and limits.brake is None


def test_on_cgroup_v2(build: Any) -> None:
    """One file holds quota and period, and the weight is cpu.weight; the ceiling is the same number."""
    knobs = Knobs.of(Layout("/kubepods", version=2))
    readings = {knobs.quota: KnobReading(-1), knobs.fixed[0].knob: KnobReading(79)}
    memory, limits = decide_limits(Memory(), knobs, build.seen(10, knobs=readings), build.usage(), SuppressStrategy())
    found = {d.name: (d.value, d.unit, d.reason) for d in limits.decisions.values()}
    assert found == {
        "cpu.max": (140_000, Unit.MICROSECONDS, Reason.QUOTA_LOWERED),
        "cpu.weight": (1, Unit.WEIGHT, Reason.FOREIGN_WRITER_LOOSENED),
    }
    assert limits.brake is not None and limits.brake.knob == knobs.quota and memory.brake == limits.brake


@pytest.mark.parametrize(
    ("cpus", "quota", "expected"),
    [
        (None, 50_000, 500),
        (2, 50_000, 500),
        (1, 150_000, 1000),
        (2, -1, 2000),
        (None, -1, None),
        (2, Missing("/q", Absence.GONE), 2000),
    ],
)
def test_what_the_kernel_lets_best_effort_use(build: Any, cpus: int | None, quota: Any, expected: int | None) -> None:
    """The smaller of its CPUs and its quota, as they were before this tick's writes."""
    seen = build.seen(best_effort_cpus=cpus, knobs=build.readings(KnobReading(quota)))
    assert decided(build, seen, build.usage())[1].best_effort_millis == expected


def test_switched_off(build: Any) -> None:
    """A ceiling of ours is lifted, the brake disarmed, the weight still held."""
    seen = build.seen(10, knobs=build.readings(KnobReading(60_000, 60_000)))
    memory, limits = decided(build, seen, build.usage(), enable=False)
    assert (limits.decisions[build.knobs.quota].value, limits.brake, memory.brake) == (-1, None, None)
    assert limits.decisions[build.weight].value == 2
