"""A tick's limits: quota, weight and the brake's plan belong together."""

from __future__ import annotations

from typing import Any

from agent.core.limits import decide_limits
from agent.core.observation import Absence, KnobReading, Missing
from agent.core.plan import KnobStanding
from model.reason import Reason
from model.strategy import SuppressStrategy


def test_the_brake_defends_what_was_decided(build: Any) -> None:
    """Base is the ceiling before online use; the deadband is 5 % of the node."""
    seen = build.seen(10, knobs={build.knobs.quota: KnobReading(-1), build.knobs.weight: KnobReading(1024)})
    _, limits = decide_limits(KnobStanding(), build.knobs, seen, build.usage(), SuppressStrategy())
    assert {d.name: d.value for d in limits.decisions.values()} == {"cpu.cfs_quota_us": 140_000, "cpu.shares": 2}
    assert limits.brake is not None
    assert (limits.brake.base_us, limits.brake.ceiling_us, limits.brake.deadband_us) == (180_000, 140_000, 10_000)


def test_no_plan_without_facts(build: Any) -> None:
    """Where usage is unknown or suppression off, the brake has nothing to defend."""
    for usage, strategy in ((None, SuppressStrategy()), (build.usage(), SuppressStrategy(enable=False))):
        assert decide_limits(KnobStanding(), build.knobs, build.seen(), usage, strategy)[1].brake is None


def test_no_raise_within_five_seconds_of_a_cut(build: Any) -> None:
    """The tick that the brake woke does not undo the brake."""
    readings = {build.knobs.quota: KnobReading(60_000, 60_000), build.knobs.weight: KnobReading(2)}
    for at, reason in ((14.9, Reason.BRAKE), (15.1, Reason.QUOTA_RAISED)):
        seen = build.seen(at, knobs=readings, brake_cuts=1, last_cut_monotonic=10.0)
        _, limits = decide_limits(KnobStanding(), build.knobs, seen, build.usage(), SuppressStrategy())
        assert limits.decisions[build.knobs.quota].reason is reason


def test_unreadable_knobs_are_reported_not_guessed(build: Any) -> None:
    """Each knob on its own: the other one still works."""
    gone = KnobReading(Missing("/q", Absence.UNREADABLE, "Input/output error"))
    seen = build.seen(knobs={build.knobs.quota: gone, build.knobs.weight: KnobReading(2)})
    _, limits = decide_limits(KnobStanding(), build.knobs, seen, build.usage(), SuppressStrategy())
    assert limits.decisions[build.knobs.quota].reason is Reason.KNOB_UNREADABLE
    assert limits.decisions[build.knobs.weight].reason is Reason.WEIGHT_HELD and limits.brake is None
