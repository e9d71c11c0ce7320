"""Kueue's kinds beside its queues, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kube import objects
from kube.dialects.queues.kueue_objects import boosted, flavor, levels, priority, submission_queue
from model.fault import ConfigurationFault
from model.flavor.resource_flavor import ResourceFlavor, SubmissionQueue
from model.node import Taint, TaintEffect
from model.pod.spec import Toleration, TolerationOperator
from model.queue import QueueState

NAME = objects.Metadata("x", "ns")
CLUSTER = objects.Metadata("x")


def test_a_flavour() -> None:
    spec = {
        "nodeLabels": {"product": "A"},
        "nodeTaints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "topologyName": "racks",
    }
    assert flavor(objects.ResourceFlavor(CLUSTER, spec)) == ResourceFlavor(
        "x",
        {"product": "A"},
        (Taint("gpu", "x"),),
        (Toleration("nvidia.com/gpu", TolerationOperator.EXISTS, "", TaintEffect.NO_SCHEDULE),),
        "racks",
    )
    assert flavor(objects.ResourceFlavor(CLUSTER)) == ResourceFlavor("x")


def test_a_local_queue() -> None:
    spec = {"clusterQueue": "team", "stopPolicy": "HoldAndDrain", "fairSharing": {"weight": 2}}
    found = submission_queue(objects.LocalQueue(NAME, spec))
    assert found == SubmissionQueue("ns", "x", "team", QueueState.DRAIN, 2000)


def test_a_priority_and_its_boost() -> None:
    assert priority(objects.WorkloadPriorityClass(CLUSTER, 1000)) == 1000
    assert boosted(1000, {"kueue.x-k8s.io/priority-boost": " -10 "}, "Workload ns/x") == 990
    assert boosted(1000, None, "Workload ns/x") == 1000
    assert boosted((1 << 31) - 1, {"kueue.x-k8s.io/priority-boost": "1"}, "") == (1 << 31) - 1


def test_a_topology() -> None:
    spec = {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]}
    assert levels(objects.Topology(CLUSTER, spec)) == ("block", "rack")


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "a topology without labels": (
        lambda: flavor(objects.ResourceFlavor(CLUSTER, {"topologyName": "racks"})),
        "ResourceFlavor x: spec.topologyName",
    ),
    "labels that are none": (
        lambda: flavor(objects.ResourceFlavor(CLUSTER, {"nodeLabels": ["a"]})),
        "ResourceFlavor x: spec.nodeLabels",
    ),
    "no ClusterQueue": (lambda: submission_queue(objects.LocalQueue(NAME, {})), "LocalQueue ns/x: spec.clusterQueue"),
    "no value": (lambda: priority(objects.WorkloadPriorityClass(CLUSTER)), "WorkloadPriorityClass x: value"),
    "no number": (lambda: priority(objects.WorkloadPriorityClass(CLUSTER, "high")), "WorkloadPriorityClass x: value"),
    "no boost": (
        lambda: boosted(1, {"kueue.x-k8s.io/priority-boost": "much"}, "Workload ns/x"),
        "Workload ns/x: annotation kueue.x-k8s.io/priority-boost",
    ),
    "no levels": (lambda: levels(objects.Topology(CLUSTER, {"levels": []})), "Topology x: spec.levels"),
    "one level twice": (
        lambda: levels(objects.Topology(CLUSTER, {"levels": [{"nodeLabel": "a"}, {"nodeLabel": "a"}]})),
        "Topology x: spec.levels",
    ),
}


@pytest.mark.parametrize(("read", "place"), BAD.values(), ids=BAD)
def test_one_sentence_for_what_is_wrong(read: Callable[[], Any], place: str) -> None:
    with pytest.raises(ConfigurationFault) as fault:
        read()
    assert str(fault.value).startswith(place)
