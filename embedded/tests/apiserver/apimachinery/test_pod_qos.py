"""The QoS class of a pod by its containers' cpu and memory.

https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/
"""

import pytest

from embedded.apiserver.apimachinery.pod_qos import qos_class

BOTH = {"cpu": "1", "memory": "1Gi"}
CLASSES = {
    "nothing": ({}, {}, "BestEffort"),
    "nothing but zeros": ({"cpu": "0"}, {"memory": "0"}, "BestEffort"),
    "another resource": ({"kubernetes.io/batch-cpu": "1k"}, {}, "BestEffort"),
    "requests": (BOTH, {}, "Burstable"),
    "limits above requests": (BOTH, {"cpu": "2", "memory": "1Gi"}, "Burstable"),
    "one of the two": ({"cpu": "1"}, {"cpu": "1"}, "Burstable"),
    "all alike": (BOTH, BOTH, "Guaranteed"),
}


@pytest.mark.parametrize(("requests", "limits", "expected"), CLASSES.values(), ids=CLASSES)
def test_one_container(requests, limits, expected):
    """By what it asks for and may use."""
    resources = {"requests": requests, "limits": limits}
    assert qos_class({"spec": {"containers": [{"name": "c", "resources": resources}]}}) == expected


def test_every_container_counts():
    """Init containers, too."""
    full = {"name": "c", "resources": {"requests": BOTH, "limits": BOTH}}
    assert qos_class({"spec": {"containers": [full], "initContainers": [{"name": "i"}]}}) == "Burstable"
