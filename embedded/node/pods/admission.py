"""May this pod run here? The kubelet's own last word, after the scheduler's.

Source: kubernetes pkg/kubelet/lifecycle/predicate.go and pkg/scheduler/framework/plugins/noderesources/fit.go.
`kubernetes.io/…` names are native to Kubernetes: a node that lacks one has none of it. A truly extended resource
(any other domain) that the node lacks is not judged at all, which is the kubelet's rule for cluster-level resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod import PodObject
from embedded.resources import CPU, MEMORY, PODS, ResourceVector

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
_MEMORY_PRESSURE_TAINT = "node.kubernetes.io/memory-pressure"
_FIRST = (PODS, CPU, MEMORY, "ephemeral-storage")


class Rejection(msgspec.Struct, frozen=True):
    """Goes into status.reason and status.message of a pod that Failed before it began."""

    reason: str
    message: str


def judge(
    wanted: ResourceVector,
    admitted: Iterable[ResourceVector],
    allocatable: ResourceVector,
    *,
    node_selector: Mapping[str, str],
    node_labels: Mapping[str, str],
) -> Rejection | None:
    """None admits the pod. `admitted` are the effective requests of the pods that hold resources already."""
    if any(node_labels.get(key) != value for key, value in node_selector.items()):
        return Rejection("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match")
    one_more = wanted + ResourceVector({PODS: 1})
    used = ResourceVector()
    for vector in admitted:
        used = used + vector + ResourceVector({PODS: 1})
    for name in _in_order(one_more):
        rejection = _lack(name, one_more[name], used[name], allocatable)
        if rejection:
            return rejection
    return None


def judge_under_pressure(pod: PodObject, qos: KubernetesQoS, pressures: frozenset[str]) -> Rejection | None:
    """While the node is short of something it takes no pod that would be the first to go again.

    Source: kubernetes pkg/kubelet/eviction/eviction_manager.go (Admit).
    """
    if not pressures or (pod.spec.priority or 0) >= SYSTEM_CRITICAL_PRIORITY:
        return None
    if pressures == {"MemoryPressure"} and (qos is not KubernetesQoS.BEST_EFFORT or _tolerates_memory_pressure(pod)):
        return None
    return Rejection("Evicted", f"Pod was rejected: The node had condition: [{' '.join(sorted(pressures))}]. ")


def _tolerates_memory_pressure(pod: PodObject) -> bool:
    return any(
        each.key in (_MEMORY_PRESSURE_TAINT, "") and each.effect in ("", "NoSchedule") and each.operator == "Exists"
        for each in pod.spec.tolerations or []
    )


def _in_order(wanted: ResourceVector) -> list[str]:
    return [*(n for n in _FIRST if n in wanted), *sorted(n for n in wanted if n not in _FIRST)]


def _lack(name: str, requested: int, used: int, allocatable: ResourceVector) -> Rejection | None:
    if not requested or (_extended(name) and name not in allocatable):
        return None
    capacity = allocatable[name]
    if requested <= capacity - used:
        return None
    return Rejection(
        f"OutOf{name}",
        f"Pod was rejected: Node didn't have enough resource: {name}, "
        f"requested: {requested}, used: {used}, capacity: {capacity}",
    )


def _extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
