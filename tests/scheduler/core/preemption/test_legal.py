"""Who may go for whom: each rule alone, the first that spares a pod is told, and nobody is counted twice."""

from __future__ import annotations

from typing import Any

import pytest
from preemption_builders import NOW, Arena, node, queue_rules, resident

from model.pod.pod import Pod
from model.priority import SYSTEM_PRIORITY, PreemptionPolicy
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.preemption.facts import NoPreemption, PreemptionFacts, Preemptor
from scheduler.core.preemption.legal import LegalVictims, decided_by_books, legality, numbers_of
from scheduler.core.preemption.policy import PreemptionPolicySettings

WHO = WorkloadId.pod("default/hp")
USUAL = PreemptionPolicySettings()


def judged(
    pods: list[Pod],
    preemptor: Preemptor | None = None,
    facts: PreemptionFacts | None = None,
    policy: PreemptionPolicySettings = USUAL,
    assumed: tuple[str, ...] = (),
) -> tuple[str, dict[str, int]]:
    """Names of who may go, and how many are spared by which rule."""
    residents = Arena([node(cpu=99)], pods, assumed).residents()
    found: LegalVictims = legality(residents, preemptor or Preemptor(WHO, 10), facts or PreemptionFacts(), policy, NOW)
    assert found.considered == sum(pod.spec.node_name == "n1" for pod in pods)
    assert found.considered == int(found.mask.sum()) + sum(number for _, number in found.excluded)
    names = sorted(pod.name for slot, pod in enumerate(residents.pods) if pod is not None and found.mask[slot])
    return "".join(names), dict(found.excluded)


def a(**more: Any) -> Pod:
    return resident("a", cpu=1, **more)


IMPORTANT, OUTSIDE, OWN = "same or higher priority", "outside the mid, batch and free bands", "own members"
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a lower priority": ({"priority": 9}, {}, ""),
    "the same": ({"priority": 10}, {}, IMPORTANT),
    "a higher one": ({"priority": 11}, {}, IMPORTANT),
    "by less than the difference": (
        {"priority": 6},
        {"policy": PreemptionPolicySettings(minimum_priority_difference=5)},
        IMPORTANT,
    ),
    "by the difference": ({"priority": 5}, {"policy": PreemptionPolicySettings(minimum_priority_difference=5)}, ""),
    "system-critical, whoever asks": (
        {"priority": SYSTEM_PRIORITY},
        {"preemptor": Preemptor(WHO, SYSTEM_PRIORITY + 9)},
        IMPORTANT,
    ),
    "the same priority and newer, outside the bands": (
        {"priority": 10, "created_seconds": 60.0},
        {"preemptor": Preemptor(WHO, 10, PreemptionPolicy.ALWAYS, 50.0)},
        IMPORTANT,
    ),
    "the same priority and newer, where equals are asked": (
        {"priority": 10, "created_seconds": 60.0, "below_prod": True},
        {"preemptor": Preemptor(WHO, 10, PreemptionPolicy.ALWAYS, 50.0)},
        "",
    ),
    "the same priority and newer, and no batch pod": (
        {"priority": 10, "created_seconds": 60.0},
        {"preemptor": Preemptor(WHO, 10, PreemptionPolicy.ALWAYS, 50.0)},
        IMPORTANT,
    ),
    "the same priority and older": (
        {"priority": 10, "created_seconds": 40.0, "below_prod": True},
        {"preemptor": Preemptor(WHO, 10, PreemptionPolicy.ALWAYS, 50.0)},
        IMPORTANT,
    ),
    "a higher priority and newer": (
        {"priority": 11, "created_seconds": 60.0},
        {"preemptor": Preemptor(WHO, 10, PreemptionPolicy.ALWAYS, 50.0)},
        IMPORTANT,
    ),
    "online, for online": ({}, {}, ""),
    "online, for batch": ({}, {"preemptor": Preemptor(WHO, 10, below_prod=True)}, OUTSIDE),
    "batch, for batch": ({"below_prod": True}, {"preemptor": Preemptor(WHO, 10, below_prod=True)}, ""),
    "its own": ({"group": "train"}, {"preemptor": Preemptor(WorkloadId.gang("default/train"), 10)}, OWN),
    "of another gang": ({"group": "other"}, {"preemptor": Preemptor(WorkloadId.gang("default/train"), 10)}, ""),
    "it leaves already": ({"deleting": True}, {}, "being deleted"),
    "only assumed": ({}, {"assumed": ("uid-a",)}, "not bound yet"),
    "protected": ({"preemptible": False}, {}, "protected by label"),
    "too young": (
        {"started_seconds": NOW - 59},
        {"policy": PreemptionPolicySettings(minimum_runtime_seconds=60)},
        "too young",
    ),
    "old enough": ({"started_seconds": NOW - 60}, {"policy": PreemptionPolicySettings(minimum_runtime_seconds=60)}, ""),
    "not started, placed a moment ago": (
        {"started_seconds": 0.0, "scheduled_seconds": NOW - 59},
        {"policy": PreemptionPolicySettings(minimum_runtime_seconds=60)},
        "too young",
    ),
    "not started for long": (
        {"started_seconds": 0.0, "scheduled_seconds": NOW - 61},
        {"policy": PreemptionPolicySettings(minimum_runtime_seconds=60)},
        "",
    ),
    "its job lost a pod lately": (
        {"group": "train"},
        {
            "facts": PreemptionFacts(evicted={WorkloadId.gang("default/train"): NOW - 9}),
            "policy": PreemptionPolicySettings(victim_cooldown_seconds=10),
        },
        "job lost pods lately",
    ),
    "long ago": (
        {"group": "train"},
        {
            "facts": PreemptionFacts(evicted={WorkloadId.gang("default/train"): NOW - 10}),
            "policy": PreemptionPolicySettings(victim_cooldown_seconds=10),
        },
        "",
    ),
    "of another queue, which has no more than its own": (
        {},
        {"facts": PreemptionFacts(queues=queue_rules("p", {"p": 2000, "q": 4000}, used=4000, capacity=6000))},
        "kept by their queue",
    ),
    "of another queue, which borrows": (
        {"priority": 1000},
        {"facts": PreemptionFacts(queues=queue_rules("p", {"p": 2000, "q": 2000}, used=4000))},
        "",
    ),
    "of another queue, which would have less than is guaranteed": (
        {},
        {
            "facts": PreemptionFacts(
                queues=queue_rules("p", {"p": 2000, "q": 2000}, used=2001, guaranteed=2000), trimmed=True
            )
        },
        "more than their queue may lose",
    ),
    "of the same queue, and of higher priority": (
        {"priority": 1000},
        {"facts": PreemptionFacts(queues=queue_rules("q", {"q": 2000}, used=4000))},
        IMPORTANT,
    ),
    "of a queue, for work that none governs": (
        {},
        {"facts": PreemptionFacts(queues=queue_rules("", {"q": 4000}, used=4000))},
        "",
    ),
    "system-critical, of a queue that borrows": (
        {"priority": 2_000_000_000},
        {"facts": PreemptionFacts(queues=queue_rules("p", {"p": 2000, "q": 2000}, used=4000))},
        "kept by their queue",
    ),
}


@pytest.mark.parametrize(("fields", "asked", "spared"), CASES.values(), ids=CASES)
def test_one_resident(fields: dict[str, Any], asked: dict[str, Any], spared: str) -> None:
    """Legal, or spared by this rule."""
    assert judged([a(**fields)], **asked) == (("", {spared: 1}) if spared else ("a", {}))


def test_each_is_spared_by_the_first_rule() -> None:
    """One that is both too important and protected is told once; pods elsewhere are not considered."""
    pods = [a(priority=50, preemptible=False), resident("b", cpu=1, preemptible=False), resident("c", "n9", cpu=1)]
    assert judged(pods) == ("", {IMPORTANT: 1, "protected by label": 1})


def test_numbers_of_jobs() -> None:
    """Of those that have residents, ascending."""
    residents = Arena([node(cpu=99)], [a(group="x"), resident("b", cpu=1, group="y")]).residents()
    every = [WorkloadId.gang("default/y"), WorkloadId.gang("default/none"), WorkloadId.gang("default/x")]
    assert numbers_of(residents, every) == [0, 1]


@pytest.mark.parametrize(
    ("outcome", "policy", "holds"),
    [
        (None, USUAL, True),
        (NoPreemption(Reason.PREEMPTION_NO_VICTIMS), USUAL, True),
        (NoPreemption(Reason.PREEMPTION_NOT_HELPFUL, lacks_quota=True), USUAL, True),
        (NoPreemption(Reason.PREEMPTION_NOT_HELPFUL), USUAL, False),
        (NoPreemption(Reason.PREEMPTION_IN_FLIGHT), USUAL, False),
        (NoPreemption(Reason.PREEMPTION_NO_VICTIMS), PreemptionPolicySettings(minimum_runtime_seconds=1.0), False),
        (NoPreemption(Reason.PREEMPTION_NO_VICTIMS), PreemptionPolicySettings(victim_cooldown_seconds=1.0), False),
    ],
)
def test_what_the_books_of_queues_decide(
    outcome: NoPreemption | None, policy: PreemptionPolicySettings, holds: bool
) -> None:
    """Not where nodes, or time, may end it."""
    assert decided_by_books(outcome, policy) is holds
