"""Resizing pods in place: what a pod wants, what it is allocated, and whether the node has room for more. Pure.

Source: kubernetes pkg/kubelet/allocation/allocation_manager.go; docs
https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from embedded.fault import Fault
from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod import PodContainer, PodObject, ReportedContainer, Resources
from embedded.node.objects.pod_resources import effective_requests, limits, requests
from embedded.node.pods.admission import Rejection, judge
from embedded.resources import CPU, MEMORY, ResourceVector

RESIZED = (CPU, MEMORY)
Allocation = Mapping[str, Resources]
"""Resources by container, of those that may be resized."""


def wanted(pod: PodObject) -> Allocation:
    return {each.name: each.resources or Resources() for each in _resizable(pod)}


def reported(pod: PodObject) -> Allocation:
    """What an earlier run of the node allocated, by the pod's status; else what the pod wants."""
    statuses = [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
    told = {each.name: each for each in statuses}
    return {name: _reported(asked, told.get(name)) for name, asked in wanted(pod).items()}


def allocated(pod: PodObject, allocation: Allocation) -> PodObject:
    """The pod with these resources in place of those it wants."""
    if allocation == wanted(pod):
        return pod
    spec = msgspec.structs.replace(
        pod.spec,
        containers=_with(pod.spec.containers, allocation),
        init_containers=_with(pod.spec.init_containers or [], allocation) or None,
    )
    return msgspec.structs.replace(pod, spec=spec)


def differ(left: PodContainer, right: PodContainer) -> tuple[str, ...]:
    """CPU and memory where the two have other amounts."""
    return tuple(
        name
        for name in RESIZED
        if requests(left)[name] != requests(right)[name] or limits(left)[name] != limits(right)[name]
    )


def must_restart(new: PodContainer, old: PodContainer) -> bool:
    """Whether the container's resizePolicy wants it started again for this change."""
    changed = differ(new, old)
    policies = {each.resource_name: each.restart_policy for each in new.resize_policy or ()}
    return any(policies.get(name) == "RestartContainer" for name in changed)


def order(pod: PodObject, wants: PodObject, qos: KubernetesQoS) -> tuple[bool, int, bool]:
    """Which resize is looked at first: what asks for no more, by priority, Guaranteed before Burstable."""
    more = effective_requests(wants)
    held = effective_requests(pod)
    grows = any(more[name] > held[name] for name in RESIZED)
    return grows, -(pod.spec.priority or 0), qos is not KubernetesQoS.GUARANTEED


def judge_resize(wants: PodObject, others: Iterable[ResourceVector], allocatable: ResourceVector) -> Rejection | None:
    """None where it fits beside the others; else Infeasible, never on this node, or Deferred."""
    try:
        asked = effective_requests(wants)
    except Fault as fault:
        return Rejection("Infeasible", str(fault))
    for name in (MEMORY, CPU):
        if asked[name] > allocatable[name]:
            amounts = f"{name}, requested: {asked[name]}, capacity: {allocatable[name]}"
            return Rejection("Infeasible", f"Node didn't have enough capacity: {amounts}")
    resized = ResourceVector({name: asked[name] for name in RESIZED})
    lack = judge(resized, others, allocatable, node_selector={}, node_labels={})
    return Rejection("Deferred", lack.message.removeprefix("Pod was rejected: ")) if lack else None


def _resizable(pod: PodObject) -> list[PodContainer]:
    return [*pod.spec.containers, *(each for each in pod.spec.init_containers or () if each.sidecar)]


def _reported(asked: Resources, told: ReportedContainer | None) -> Resources:
    if told is None or told.allocated_resources is None:
        return asked
    held = {name: amount for name, amount in told.allocated_resources.items() if name in RESIZED}
    in_force = (told.resources and told.resources.limits) or asked.limits
    return Resources({**(asked.requests or {}), **held} or None, in_force)


def _with(containers: list[PodContainer], allocation: Allocation) -> list[PodContainer]:
    return [msgspec.structs.replace(each, resources=allocation.get(each.name, each.resources)) for each in containers]
