"""From requests and limits to kernel values, with the kubelet's formulas.

Source: kubernetes pkg/kubelet/cm/helpers_linux.go, pkg/kubelet/qos/policy.go, pkg/api/v1/resource/helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from embedded.cgroups.ceilings import Ceiling, quota_us, shares
from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod import PodContainer, PodObject
from embedded.resources import CPU, MEMORY, ResourceVector, parse_resources

_GUARANTEED_OOM_SCORE = -997
_BEST_EFFORT_OOM_SCORE = 1_000


def requests(container: PodContainer) -> ResourceVector:
    """Own requests; a resource that has only a limit requests its limit, as the API server defaults it."""
    told = (container.resources.requests if container.resources else None) or {}
    limited = (container.resources.limits if container.resources else None) or {}
    return parse_resources({**limited, **told}, f"container {container.name} requests")


def limits(container: PodContainer) -> ResourceVector:
    told = (container.resources.limits if container.resources else None) or {}
    return parse_resources(told, f"container {container.name} limits")


def effective_requests(pod: PodObject) -> ResourceVector:
    """What the pod takes of the node: containers and sidecars together, or the largest init step, plus overhead."""
    running = _total(requests(container) for container in pod.spec.containers)
    sidecars = ResourceVector()
    largest_step = ResourceVector()
    for container in pod.spec.init_containers or []:
        step = requests(container) + sidecars
        if container.restart_policy == "Always":
            sidecars = step
        largest_step = largest_step.maximum(step)
    overhead = parse_resources(pod.spec.overhead or {}, "overhead")
    return (running + sidecars).maximum(largest_step) + overhead


def qos_class(pod: PodObject) -> KubernetesQoS:
    """Kubernetes' QoS class; only cpu and memory count."""
    containers = [*pod.spec.containers, *(pod.spec.init_containers or [])]
    asked = [(requests(container), limits(container)) for container in containers]
    if not any(vector[name] for pair in asked for vector in pair for name in (CPU, MEMORY)):
        return KubernetesQoS.BEST_EFFORT
    if all(limit[name] and request[name] == limit[name] for request, limit in asked for name in (CPU, MEMORY)):
        return KubernetesQoS.GUARANTEED
    return KubernetesQoS.BURSTABLE


def container_ceiling(container: PodContainer) -> Ceiling:
    limit = limits(container)
    return Ceiling(shares(requests(container)[CPU]), quota_us(limit[CPU]), limit[MEMORY] or None)


def pod_ceiling(pod: PodObject) -> Ceiling:
    """The pod's own cgroup: a ceiling only where every container has one."""
    limited = [limits(container) for container in pod.spec.containers]
    total = effective_limits(pod)
    every = {name: all(limit[name] for limit in limited) for name in (CPU, MEMORY)}
    return Ceiling(
        shares(effective_requests(pod)[CPU]),
        quota_us(total[CPU]) if every[CPU] else None,
        total[MEMORY] if every[MEMORY] else None,
    )


def effective_limits(pod: PodObject) -> ResourceVector:
    """Containers together, or the largest init container."""
    largest_init = ResourceVector()
    for container in pod.spec.init_containers or []:
        largest_init = largest_init.maximum(limits(container))
    return _total(limits(container) for container in pod.spec.containers).maximum(largest_init)


def oom_score(container: PodContainer, qos: KubernetesQoS, memory_capacity_bytes: int) -> int:
    """oom_score_adj of a container's processes."""
    if qos is KubernetesQoS.GUARANTEED:
        return _GUARANTEED_OOM_SCORE
    if qos is KubernetesQoS.BEST_EFFORT:
        return _BEST_EFFORT_OOM_SCORE
    score = 1000 - 1000 * requests(container)[MEMORY] // memory_capacity_bytes
    return min(max(score, 1000 + _GUARANTEED_OOM_SCORE), _BEST_EFFORT_OOM_SCORE - 1)


def _total(vectors: Iterable[ResourceVector]) -> ResourceVector:
    total = ResourceVector()
    for vector in vectors:
        total = total + vector
    return total
