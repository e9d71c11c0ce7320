"""Exclusive CPU: what one pod has and nobody else may use, idle or not.

An LSE pod's, by Koordinator's word: what it asks for, and the CPUs that it was given, which stay its own when it is
resized to ask for fewer. And the whole CPUs of a container of a Guaranteed pod where the kubelet's CPU
manager gives them away. Source: kubernetes pkg/kubelet/cm/cpumanager/policy_static.go (guaranteedCPUs).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.pod.pod import Pod
from model.qos import KubernetesQoS, QoSClass
from model.resources import CPU
from model.topology import KubeletPolicy, parse_cpus

_ONE = 1000


def exclusive_millis(pod: Pod, policy: KubeletPolicy) -> int:
    """Milli-CPU of a pod that nobody else may use; 0 of one that ended."""
    if pod.terminal:
        return 0
    if pod.colocation.qos is QoSClass.LSE:
        return max(pod.spec.requests[CPU], _ONE * len(parse_cpus(pod.colocation.cpuset)))
    if policy is not KubeletPolicy.STATIC or pod.status.kubernetes_qos is not KubernetesQoS.GUARANTEED:
        return 0
    sidecars = (container for container in pod.spec.init_containers if container.sidecar)
    asked = (each.requests[CPU] or each.limits[CPU] for each in (*pod.spec.containers, *sidecars))
    return sum(millis for millis in asked if millis % _ONE == 0)


def idle_millis(pods: Iterable[Pod], policy: KubeletPolicy, used: Mapping[str, int]) -> int:
    """What pods leave idle of it; `used` is milli-CPU by uid, and who is not measured leaves all."""
    exclusive = ((exclusive_millis(pod, policy), used.get(pod.uid, 0)) for pod in pods)
    return sum(max(own - its_use, 0) for own, its_use in exclusive)
