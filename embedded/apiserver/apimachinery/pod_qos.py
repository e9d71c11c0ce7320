"""The Kubernetes QoS class of a pod."""

from __future__ import annotations

from embedded.apiserver.apimachinery.objects import Object, dig


def qos_class(pod: Object) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory of every container.

    https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/
    """
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    amounts = [
        (dig(c, f"resources.requests.{resource}", "0"), dig(c, f"resources.limits.{resource}", "0"))
        for c in containers
        for resource in ("cpu", "memory")
    ]
    if all(request == "0" and limit == "0" for request, limit in amounts):
        return "BestEffort"
    guaranteed = all(limit != "0" and request == limit for request, limit in amounts)
    return "Guaranteed" if guaranteed else "Burstable"
