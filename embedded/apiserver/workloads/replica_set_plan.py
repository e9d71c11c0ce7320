"""What a ReplicaSet needs next, decided from it and its pods alone.

https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from embedded.apiserver.apimachinery.objects import Object, dig, rfc3339
from embedded.apiserver.workloads.pods import WorkloadPod, next_available

_MOST_AT_ONCE = 500
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_FAILURE = "ReplicaFailure"


@dataclass(frozen=True, slots=True)
class ReplicaSetPlan:
    """How many pods to create, which to delete, and when to look again without a change."""

    create: int = 0
    delete: tuple[str, ...] = ()
    look_again: float | None = None


def plan_replica_set(
    replica_set: Object, pods: Sequence[WorkloadPod], related: Sequence[WorkloadPod], now: float
) -> ReplicaSetPlan:
    """Bring the active pods to the wanted number; `related` are those of all ReplicaSets of the same owner."""
    spec, active = replica_set["spec"], [pod for pod in pods if pod.active]
    surplus = min(len(active) - spec["replicas"], _MOST_AT_ONCE)
    look_again = next_available(active, spec.get("minReadySeconds") or 0, now)
    if surplus <= 0:
        return ReplicaSetPlan(min(-surplus, _MOST_AT_ONCE), (), look_again)
    active_on_node = Counter(pod.node for pod in related if pod.active)
    first = sorted(active, key=lambda pod: _worth(pod, active_on_node[pod.node], now))[:surplus]
    return ReplicaSetPlan(0, tuple(pod.name for pod in first), look_again)


def _worth(pod: WorkloadPod, active_on_node: int, now: float) -> tuple[object, ...]:
    """The order in which pods go, the first at once: those that run longest and alone on their node go last.

    Ages count by their magnitude, so that which of many old pods goes is not decided by minutes (LogarithmicScaleDown).
    https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#scaling-a-replicaset
    """
    since = pod.ready_since
    return (
        pod.node != "",
        _PHASES.get(pod.phase, 0),
        pod.ready,
        pod.deletion_cost,
        -active_on_node,
        0 if since is None else _magnitude(now - since),
        -pod.restarts,
        _magnitude(now - pod.created),
        pod.uid,
    )


def _magnitude(seconds: float) -> int:
    return int(log2(seconds * 1e9)) if seconds > 0 else -1


def replica_set_status(replica_set: Object, pods: Sequence[WorkloadPod], failure: str | None, now: float) -> Object:
    """The status with these pods; `failure` is why some of what was planned could not be done, None if all was."""
    spec, active = replica_set["spec"], [pod for pod in pods if pod.active]
    labels = (dig(spec, "template.metadata.labels") or {}).items()
    numbers = {
        "fullyLabeledReplicas": sum(labels <= pod.labels.items() for pod in active),
        "readyReplicas": sum(pod.ready for pod in active),
        "availableReplicas": sum(pod.available(spec.get("minReadySeconds") or 0, now) for pod in active),
        "observedGeneration": replica_set["metadata"].get("generation", 1),
    }
    status: Object = {"replicas": len(active), **{key: number for key, number in numbers.items() if number}}
    status["terminatingReplicas"] = sum(pod.deleting and not pod.ended for pod in pods)
    if conditions := _conditions(replica_set, len(active) - spec["replicas"], failure, now):
        status["conditions"] = conditions
    return status


def _conditions(replica_set: Object, surplus: int, failure: str | None, now: float) -> list[Object]:
    """A failure that is known already keeps its words."""
    held: list[Object] = dig(replica_set, "status.conditions") or []
    others = [each for each in held if each["type"] != _FAILURE]
    if failure is None:
        return others
    if known := [each for each in held if each["type"] == _FAILURE]:
        return [*others, *known]
    reason = "FailedCreate" if surplus < 0 else "FailedDelete"
    told = {"type": _FAILURE, "status": "True", "reason": reason, "message": failure}
    return [*others, {**told, "lastTransitionTime": rfc3339(now)}]
