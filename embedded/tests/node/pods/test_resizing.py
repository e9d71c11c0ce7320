"""What a resize asks for, against what was allocated and what the node has."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod_resources import effective_requests
from embedded.node.pods import resizing
from embedded.resources import ResourceVector

GI = 1 << 30
NODE = ResourceVector({"cpu": 4000, "memory": 8 * GI, "pods": 110})
SMALL = {"requests": {"cpu": "1", "memory": "1Gi"}}
BIG = {"requests": {"cpu": "3", "memory": "1Gi"}}
RESTART = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


def others(cpu: int = 0, memory: int = 0) -> list[ResourceVector]:
    return [ResourceVector({"cpu": cpu, "memory": memory})]


JUDGED: dict[str, tuple[dict[str, Any], list[ResourceVector], tuple[str, str] | None]] = {
    "there is room": (BIG, others(1000), None),
    "none now": (
        BIG,
        others(1001),
        ("Deferred", "Node didn't have enough resource: cpu, requested: 3000, used: 1001, capacity: 4000"),
    ),
    "never": (
        {"requests": {"cpu": "5", "memory": "1Gi"}},
        [],
        ("Infeasible", "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"),
    ),
    "memory is told first": (
        {"requests": {"cpu": "5", "memory": "9Gi"}},
        [],
        ("Infeasible", f"Node didn't have enough capacity: memory, requested: {9 * GI}, capacity: {8 * GI}"),
    ),
    "other resources are not looked at": ({"requests": {"cpu": "3", "kubernetes.io/batch-cpu": "9k"}}, [], None),
}


@pytest.mark.parametrize(("wants", "held", "expected"), JUDGED.values(), ids=JUDGED)
def test_judged(pod: Any, wants: dict[str, Any], held: list[ResourceVector], expected: tuple[str, str] | None) -> None:
    """In the kubelet's words."""
    why = resizing.judge_resize(pod(containers=[{"resources": wants}]), held, NODE)
    assert (why and (why.reason, why.message)) == expected


def test_allocated_amounts_stand_in_for_those_that_are_wanted(pod: Any) -> None:
    """Of containers and sidecars."""
    sidecar = {"name": "side", "image": "i", "restartPolicy": "Always", "resources": SMALL}
    held = pod(containers=[{"resources": SMALL}], initContainers=[sidecar])
    wants = pod(containers=[{"resources": BIG}], initContainers=[{**sidecar, "resources": BIG}])
    found = resizing.allocated(wants, resizing.wanted(held))
    assert effective_requests(found) == effective_requests(held) != effective_requests(wants)
    assert resizing.allocated(wants, resizing.wanted(wants)) is wants


REPORTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing told": ({}, BIG),
    "less allocated": ({"allocatedResources": SMALL["requests"], "resources": SMALL}, SMALL),
    "limits in force": (
        {
            "allocatedResources": SMALL["requests"],
            "resources": {**SMALL, "limits": {"cpu": "2"}},
        },
        {**SMALL, "limits": {"cpu": "2"}},
    ),
}


@pytest.mark.parametrize(("told", "expected"), REPORTED.values(), ids=REPORTED)
def test_a_restarted_node_goes_on_with_what_it_reported(
    pod: Any, told: dict[str, Any], expected: dict[str, Any]
) -> None:
    """What was deferred is still to be judged."""
    status = {"containerStatuses": [{"name": "main", **told}]}
    found = resizing.reported(pod(containers=[{"resources": BIG}], status=status))["main"]
    assert {"requests": found.requests, "limits": found.limits} == {"limits": None, **expected}


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "cpu, of which nothing is said": (SMALL, BIG, False),
    "memory": (SMALL, {"requests": {"cpu": "1", "memory": "2Gi"}}, True),
    "nothing": (SMALL, SMALL, False),
    "the same amount in other words": (SMALL, {"requests": {"cpu": "1000m", "memory": "1024Mi"}}, False),
    "a memory limit": (SMALL, {**SMALL, "limits": {"memory": "2Gi"}}, True),
}


@pytest.mark.parametrize(("before", "after", "restarts"), CHANGES.values(), ids=CHANGES)
def test_policy(pod: Any, before: dict[str, Any], after: dict[str, Any], restarts: bool) -> None:
    """A container starts again where its resizePolicy says so of what changed."""
    old, new = (
        pod(containers=[{"resources": each, "resizePolicy": RESTART}]).spec.containers[0] for each in (before, after)
    )
    assert resizing.must_restart(new, old) is restarts


def test_order(pod: Any) -> None:
    """What takes no more is first, then priority, then the class."""
    small, big = (pod(containers=[{"resources": each}]) for each in (SMALL, BIG))
    important = pod(containers=[{"resources": SMALL}], priority=10)
    burstable, guaranteed = KubernetesQoS.BURSTABLE, KubernetesQoS.GUARANTEED
    found = [
        resizing.order(big, small, burstable),
        resizing.order(important, big, burstable),
        resizing.order(small, big, guaranteed),
        resizing.order(small, big, burstable),
    ]
    assert found == sorted(found)
