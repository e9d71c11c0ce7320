"""Objects as an API server hands them to the scheduler: priorities, requests, budgets, names."""

from __future__ import annotations

from typing import Any

import pytest

from cli.simulate.cluster_objects import DEFAULT_SCHEDULER, Admission
from model.fault import ConfigurationFault
from tests.cli.simulate.clusters import NOW, Object, decided, given, node, other, pod


def admitted(*objects: Object) -> list[Any]:
    """The Pods among the objects."""
    found = given(*objects)
    admission = Admission(found, NOW)
    return [admission.pod(one) for one in found.of("Pod")]


def priority_class(name: str, value: int, **fields: Any) -> Object:
    return other("PriorityClass", "scheduling.k8s.io/v1", name, value=value, **fields)


GOLD = priority_class("gold", 1000, preemptionPolicy="Never")
PRIORITIES: dict[str, tuple[list[Object], Object, tuple[int, str | None]]] = {
    "no class": ([], {}, (0, None)),
    "its class": ([GOLD], {"priorityClassName": "gold"}, (1000, "Never")),
    "what it says itself stands": ([GOLD], {"priorityClassName": "gold", "priority": 7}, (7, "Never")),
    "a class of Kubernetes": ([], {"priorityClassName": "system-node-critical"}, (2_000_001_000, None)),
    "the lowest of several defaults": (
        [priority_class("b", 5, globalDefault=True), priority_class("a", 9, globalDefault=True)],
        {},
        (5, None),
    ),
}


@pytest.mark.parametrize("case", PRIORITIES)
def test_a_priority(case: str) -> None:
    """As Kubernetes' admission takes it from PriorityClasses."""
    classes, spec, expected = PRIORITIES[case]
    (found,) = admitted(*classes, pod(**spec))
    assert (found.spec.priority, found.spec.preemption_policy) == expected


def test_a_class_that_is_not_given() -> None:
    with pytest.raises(
        ConfigurationFault, match=r"file document 1: Pod default/p: spec.priorityClassName: no Priority"
    ):
        admitted(pod(priorityClassName="gold"))


def test_a_limit_stands_for_the_request_that_is_not_made() -> None:
    """Of each resource by itself."""
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    (found,) = admitted(pod(resources=resources))
    assert found.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}


def test_who_names_no_scheduler_is_ours() -> None:
    one, two = admitted(pod("a"), pod("b", schedulerName="x"))
    assert (one.spec.scheduler_name, two.spec.scheduler_name) == (DEFAULT_SCHEDULER, "x")


def test_names_and_dates() -> None:
    """Without a uid, or with one that another has, the name stands for it; the time is now."""
    first, second, third = (pod(name) for name in "abc")
    for each in (first, second):
        each["metadata"]["uid"] = "same"
    found = [one.metadata for one in admitted(first, second, third)]
    assert [one.uid for one in found] == ["same", "default/b", "default/c"]
    assert {one.creation_timestamp.timestamp() for one in found} == {NOW}


def test_a_group_has_the_priority_of_its_class() -> None:
    """As admission settles it, no more than its pods have: they go before one that was there earlier, and not without."""
    group = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    gold = other("PriorityClass", "scheduling.k8s.io/v1", "gold", value=1000)
    pods = (pod("a", cpu="4"), pod("b", cpu="4", priority=1000, schedulingGroup={"podGroupName": "g"}))
    for extra, first in (({}, "a"), ({"priorityClassName": "gold"}, "b")):
        asked = other("PodGroup", "scheduling.k8s.io/v1beta1", "g", spec=group | extra)
        found = decided(node(), gold, asked, *pods)
        assert [each.pod for each in found.placements] == [f"default/{first}"]


BUDGETS = {
    "at least one of two": ({"minAvailable": 1}, 1),
    "at least half of two": ({"minAvailable": "50%"}, 1),
    "percentages are rounded up": ({"minAvailable": "51%"}, 0),
    "at most one may be missing": ({"maxUnavailable": 1}, 1),
    "none may be missing": ({"maxUnavailable": 0}, 0),
    "all may be missing": ({"maxUnavailable": "100%"}, 2),
}


@pytest.mark.parametrize("case", BUDGETS)
def test_a_budget_without_a_status(case: str) -> None:
    """It is kept for as many pods as it does not allow to go: others of higher priority go for them."""
    spec, allowed = BUDGETS[case]
    kept = [pod(f"kept{i}", "1", labels={"app": "kept"}, nodeName="n1", priority=1) for i in range(2)]
    others = [pod(f"other{i}", "1", nodeName="n2", priority=1) for i in range(2)]
    selector = {"selector": {"matchLabels": {"app": "kept"}}}
    wanted = pod("high", "2", priority=10)
    found = decided(
        node("n1", "2"),
        node("n2", "2"),
        *kept,
        *others,
        wanted,
        other("PodDisruptionBudget", "policy/v1", spec=spec | selector),
    )
    on = {row.node for row in found.victims}
    assert len(found.victims) == 2 and on <= {"n1", "n2"}
    assert allowed == 2 or on == {"n2"}
