"""A choice of victims as a plan: who asks, who goes with which notice, where everybody goes, and what was spared."""

from __future__ import annotations

import msgspec
from preemption_builders import Arena, members, node, resident, victims, waiting
from preemption_reference import budget
from scheduler_builders import candidate, gang

from model.placement import EvictionPlan, PlacementState, Victim
from model.pod.colocation import EvictionTerms
from model.workload import WorkloadId
from scheduler.core.preemption.facts import PreemptionPlan
from scheduler.core.preemption.plan import message


def planned(arena: Arena, *pods: object, **more: object) -> PreemptionPlan:
    found = arena.ask(pods, **more)
    assert isinstance(found, PreemptionPlan)
    return found


def test_the_plan_of_a_lone_pod() -> None:
    """Victims by name with their node, job and notice; the pod's own place; who else might have gone."""
    pods = [
        resident("b", cpu=2, eviction=EvictionTerms(notice_seconds=30.0), priority=1),
        resident("a", cpu=2, priority=1),
        resident("kept", "n2", priority=2),
        resident("own", "n3", priority=500),
    ]
    plan = planned(Arena([node("n1"), node("n2"), node("n3")], pods), waiting(cpu=4))
    assert [(v.pod_key, v.node, v.subject, v.notice_seconds) for v in plan.eviction.victims] == [
        ("default/a", "n1", WorkloadId.pod("default/a"), 0.0),
        ("default/b", "n1", WorkloadId.pod("default/b"), 30.0),
    ]
    (placement,) = plan.eviction.placements
    assert (placement.pod_key, placement.node, placement.state) == ("default/hp", "n1", PlacementState.NOMINATED)
    assert (plan.eviction.preemptor, plan.eviction.trigger) == (WorkloadId.pod("default/hp"), "default/hp")
    assert (plan.nominated.subject, plan.nominated.priority) == (WorkloadId.pod("default/hp"), 100)
    assert [assignment.uid for assignment in plan.nominated.assignments] == ["uid-hp"]
    assert (plan.tally.considered, plan.tally.kept, plan.tally.violations) == (4, 1, 0)
    assert dict(plan.tally.excluded) == {"same or higher priority": 1}


def test_the_trigger_is_the_first_by_rank() -> None:
    """Then by name; Koordinator's triggerPod."""
    pods = [
        *members(2),
        waiting("a-late", gang=members(1)[0].spec.gang, rank=7),
    ]
    plan = planned(Arena([node("n1", 9)], [resident("v", cpu=9)]), *pods, group=gang(3))
    assert plan.eviction.trigger == "default/w0"


def test_broken_budgets_are_counted() -> None:
    """Those of the victims alone."""
    pods = [resident("x", labels={"app": "x"}), resident("far", "n9", labels={"app": "x"})]
    plan = planned(Arena([node("n1")], pods), waiting(cpu=4), budgets=(budget("x"),))
    assert (victims(plan), plan.tally.violations) == (["x"], 1)


def test_the_words_of_a_victim() -> None:
    """Koordinator's, with our name before them; a queue that takes back what it lent says so."""
    group = candidate(members(1), gang(1))
    victim = Victim("default/v", "uid-v", "n1", WorkloadId.pod("default/v"), queue="theirs")
    plan = EvictionPlan(preemptor=group.subject, trigger="default/w0", victims=(), placements=(), queue="ours")
    named = "preemptor: default/train, triggerPod: default/w0"
    assert message(plan, victim, "sublet") == f"sublet: preempting to accommodate higher priority pods, {named}"
    reclaimed = msgspec.structs.replace(victim, reclaimed=True)
    assert message(plan, reclaimed, "sublet") == f"sublet: queue ours takes back what queue theirs borrowed, {named}"
