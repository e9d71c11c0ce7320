"""Status of pods: conditions and refusals by the kubelet."""

from __future__ import annotations

import pytest

from kube.dialects.upstream import podstate
from kube.objects import Condition, ContainerStatus, PodStatus

AT = "2026-01-01T00:00:20Z"
RAN = [ContainerStatus("c", "containerd://abc")]


def test_conditions() -> None:
    """Times of those that are met."""
    found = podstate.conditions(
        [
            Condition("PodScheduled", "True", last_transition_time=AT),
            Condition("Initialized", "False", last_transition_time=AT),
            Condition("Ready", "True", last_transition_time=AT),
        ]
    )
    assert (found.scheduled_seconds, found.initialized_seconds, found.disrupted) == (1767225620.0, 0.0, False)


@pytest.mark.parametrize("text", [None, "", "yesterday", "2026-01-01"])
def test_a_time_that_is_none(text: str | None) -> None:
    """Counts as not known."""
    assert podstate.conditions([Condition("PodScheduled", "True", last_transition_time=text)]).scheduled_seconds == 0


@pytest.mark.parametrize(
    ("status", "reason", "disrupted", "evicted"),
    [
        ("True", "PreemptionByScheduler", True, True),
        ("True", "EvictionByEvictionAPI", False, True),
        ("True", "ClusterQueueStopped", False, True),
        ("False", "PreemptionByScheduler", False, False),
    ],
)
def test_disruption(status: str, reason: str, disrupted: bool, evicted: bool) -> None:
    """A scheduler's preemption is told from any other eviction."""
    found = podstate.conditions([Condition("DisruptionTarget", status, reason)])
    assert (found.disrupted, found.evicted) == (disrupted, evicted)


REFUSED: dict[str, tuple[PodStatus, str]] = {
    "a resource": (PodStatus("Failed", reason="OutOfcpu"), "OutOfcpu"),
    "batch amounts": (PodStatus("Failed", reason="OutOfkubernetes.io/batch-cpu"), "OutOfkubernetes.io/batch-cpu"),
    "NUMA": (PodStatus("Failed", reason="TopologyAffinityError"), "TopologyAffinityError"),
    "a device": (PodStatus("Failed", reason="UnexpectedAdmissionError"), "UnexpectedAdmissionError"),
    "labels": (PodStatus("Failed", reason="NodeAffinity"), "NodeAffinity"),
    "a node that goes down": (PodStatus("Failed", reason="NodeShutdown"), "NodeShutdown"),
    "it failed by itself": (PodStatus("Failed"), ""),
    "its deadline passed": (PodStatus("Failed", reason="DeadlineExceeded"), ""),
    "it ran before": (PodStatus("Failed", reason="NodeShutdown", container_statuses=RAN), ""),
    "an init container ran": (PodStatus("Failed", reason="Evicted", init_container_statuses=RAN), ""),
    "a status without an id": (
        PodStatus("Failed", reason="OutOfpods", container_statuses=[ContainerStatus("c")]),
        "OutOfpods",
    ),
    "not failed": (PodStatus("Running", reason="OutOfcpu"), ""),
}


@pytest.mark.parametrize(("status", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_the_kubelet(status: PodStatus, expected: str) -> None:
    """At admission, before any container ran."""
    assert podstate.rejected(status) == expected
