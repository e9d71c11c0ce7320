"""The numbers told of a preemption sum up."""

from __future__ import annotations

from preemption_builders import Arena, node, resident, waiting

from model.explain import sentence
from model.priority import PreemptionPolicy
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.preemption.explain import decision


def test_plan() -> None:
    """On nodes minus spared minus not needed are the victims."""
    pods = [resident("a", cpu=2), resident("b", cpu=1, preemptible=False), resident("c", cpu=1, priority=200)]
    outcome = Arena([node(), node("n2")], [*pods, resident("d", "n2", priority=1)]).ask([waiting(cpu=2)])
    found = decision(WorkloadId.pod("default/hp"), outcome, 1.0)
    assert (found.value, found.reason) == (1, Reason.PREEMPTING)
    assert {term.name: term.value for term in found.terms} == {
        "pods on nodes": 4,
        "same or higher priority": -1,
        "protected by label": -1,
        "not needed": -1,
    }
    assert "default/a on n1" in sentence(found)


def test_refusal() -> None:
    """No pod is evicted, whichever might be."""
    found = decision(WorkloadId.pod("default/hp"), Arena([node()], [resident("a")]).ask([waiting(cpu=9)]), 1.0)
    assert (found.value, found.reason) == (0, Reason.PREEMPTION_NOT_HELPFUL)


def test_room_that_comes_by_itself() -> None:
    """No pod is evicted, and it is said what it waits for."""
    found = decision(
        WorkloadId.pod("default/hp"), Arena([node()], [resident("a", deleting=True)]).ask([waiting()]), 1.0
    )
    assert (found.value, found.reason) == (0, Reason.VICTIMS_TERMINATING)


def test_refusal_before_anybody_was_looked_at() -> None:
    """Nobody was counted, so no number of pods is told: zero of them would be wrong."""
    outcome = Arena([node()], [resident("a")]).ask([waiting(cpu=9, preemption_policy=PreemptionPolicy.NEVER)])
    found = decision(WorkloadId.pod("default/hp"), outcome, 1.0)
    assert (found.value, found.reason, found.terms) == (0, Reason.PREEMPTION_POLICY_NEVER, ())
