"""A pod's answers that take more than one of its parts."""

from __future__ import annotations

from typing import Any

import pytest

from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.workload import GangMembership, GangSource, WorkloadId
from tests.pods import make_pod


@pytest.mark.parametrize(
    ("fields", "borrows", "best_effort"),
    [
        ({}, False, False),
        ({"qos_label": QoSClass.BE}, True, True),
        ({"qos": QoSClass.BE}, False, False),
        ({"band": PriorityBand.MID}, True, False),
        ({"band": PriorityBand.BATCH}, False, False),
        ({"kubernetes_qos": KubernetesQoS.BEST_EFFORT}, False, True),
        ({"kubernetes_qos": KubernetesQoS.BEST_EFFORT, "qos_label": QoSClass.LS}, False, True),
    ],
)
def test_what_it_lives_on(fields: dict[str, Any], borrows: bool, best_effort: bool) -> None:
    """Its label decides, not the class that it has by default; besides, its band or its Kubernetes class."""
    pod = make_pod("d", "p", "u", **fields)
    assert (pod.borrows, pod.best_effort) == (borrows, best_effort)


@pytest.mark.parametrize("phase", PodPhase)
def test_terminal(phase: PodPhase) -> None:
    """An unknown phase is not an end: the node may only be silent."""
    assert make_pod("d", "p", "u", phase=phase).terminal == (phase in (PodPhase.SUCCEEDED, PodPhase.FAILED))


def test_own_workload() -> None:
    """Its gang, whose namespace counts; without one the pod by itself."""
    gang = GangMembership("d", "g", GangSource.POD_GROUP)
    assert make_pod("d", "p", "u").own_workload == WorkloadId.pod("d/p")
    assert make_pod("d", "p", "u", gang=gang).own_workload == WorkloadId.gang("d/g")
