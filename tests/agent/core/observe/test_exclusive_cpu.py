"""Exclusive CPU: whose it is, and what of it is idle."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.observe.exclusive_cpu import exclusive_millis, idle_millis
from model.pod.pod import Pod
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, QoSClass
from model.resources import CPU, ResourceVector
from model.topology import KubeletPolicy
from tests.pods import make_pod

STATIC, NONE = KubeletPolicy.STATIC, KubeletPolicy.NONE


def container(name: str, millis: int, **more: Any) -> Container:
    return Container(name, ResourceVector({CPU: millis}), ResourceVector({CPU: millis}), **more)


def pod(**more: Any) -> Pod:
    """A Guaranteed pod of 2 CPUs and half of one."""
    fields = {
        "requests": ResourceVector({CPU: 2500}),
        "kubernetes_qos": KubernetesQoS.GUARANTEED,
        "containers": (container("whole", 2000), container("half", 500)),
        "phase": PodPhase.RUNNING,
    }
    return make_pod("d", "web", "u", **{**fields, **more})


CASES: dict[str, tuple[Pod, KubeletPolicy, int]] = {
    "whole CPUs": (pod(), STATIC, 2000),
    "the kubelet gives none away": (pod(), NONE, 0),
    "Burstable": (pod(kubernetes_qos=KubernetesQoS.BURSTABLE), STATIC, 0),
    "best effort": (pod(kubernetes_qos=KubernetesQoS.BEST_EFFORT), STATIC, 0),
    "a sidecar": (pod(init_containers=(container("mesh", 1000, sidecar=True),)), STATIC, 3000),
    "an init container": (pod(init_containers=(container("init", 1000),)), STATIC, 2000),
    "a limit stands for the request": (
        pod(containers=(Container("whole", ResourceVector(), ResourceVector({CPU: 2000})),)),
        STATIC,
        2000,
    ),
    "one that ended": (pod(phase=PodPhase.SUCCEEDED), STATIC, 0),
    "LSE": (pod(qos=QoSClass.LSE), NONE, 2500),
    "LSE that asks for fewer CPUs than it was given": (pod(qos=QoSClass.LSE, cpuset="0-3"), NONE, 4000),
    "LSR, whose CPUs best effort shares": (pod(qos=QoSClass.LSR), NONE, 0),
}


@pytest.mark.parametrize(("one", "policy", "expected"), CASES.values(), ids=CASES)
def test_exclusive_cpu(one: Pod, policy: KubeletPolicy, expected: int) -> None:
    assert exclusive_millis(one, policy) == expected


@pytest.mark.parametrize(("used", "expected"), [({}, 2000), ({"u": 500}, 1500), ({"u": 2400}, 0)], ids=str)
def test_what_is_idle(used: dict[str, int], expected: int) -> None:
    """All of a pod that is not measured; never less than none."""
    assert idle_millis([pod()], STATIC, used) == expected and idle_millis([pod()], NONE, used) == 0
