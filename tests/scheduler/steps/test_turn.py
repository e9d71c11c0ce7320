"""Parts of a turn are put together: nothing of either is lost."""

from __future__ import annotations

from kube.objects import Condition
from model.placement import EvictionPlan
from model.workload import WorkloadId
from scheduler.ports import NamedObject
from scheduler.steps.turn import GangCondition, Turn

ONE, TWO, THREE = (EvictionPlan(WorkloadId.pod(f"d/{name}"), f"d/{name}", (), ()) for name in "abc")


def test_parts_follow_each_other() -> None:
    """Lists go on, dictionaries take the newest, numbers add up, and what one part says is said."""
    first = Turn(plans=[ONE], spared=["a"], timeouts=1, more=True)
    second = Turn(plans=[TWO, THREE], timeouts=2, reread=True, gone=[WorkloadId.pod("d/p")])
    first.add(second)
    assert (first.plans, first.spared, first.gone) == ([ONE, TWO, THREE], ["a"], [WorkloadId.pod("d/p")])
    assert (first.timeouts, first.more, first.reread) == (3, True, True)
    assert second.plans == [TWO, THREE]


def test_every_field_is_put_together() -> None:
    """One that a part sets and `add` does not know would be lost without a word."""
    part = Turn()
    for name in Turn.__struct_fields__:
        before = getattr(part, name)
        if isinstance(before, list):
            setattr(part, name, ["x"])
        elif isinstance(before, dict):
            setattr(part, name, {"k": "x"})
        else:
            setattr(part, name, type(before)(1))
    whole = Turn()
    whole.add(part)
    assert whole == part
    whole.add(Turn())
    assert whole == part


def test_a_condition_is_about_one_gang_and_one_type() -> None:
    """By uid: a gang of the same name that was made again is another."""
    key = GangCondition(NamedObject("d", "g", "u1"), Condition("Scheduled", "True")).key
    assert key == ("u1", "Scheduled")
    assert key != GangCondition(NamedObject("d", "g", "u2"), Condition("Scheduled", "True")).key
