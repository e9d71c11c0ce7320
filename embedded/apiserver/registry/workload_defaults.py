"""Default values of what makes pods. Source: kubernetes `pkg/apis/apps/v1/defaults.go`."""

from __future__ import annotations

from collections.abc import Callable

from embedded.apiserver.apimachinery.objects import Object, dig, ensure

_HISTORY = 10
_PROGRESS_SECONDS = 600
_ROLLING = "RollingUpdate"
PodSpecDefaults = Callable[[Object], None]


def default_deployment(deployment: Object, default_pod_spec: PodSpecDefaults) -> None:
    spec = _replicated(deployment, default_pod_spec)
    ensure(deployment, "status")
    spec.setdefault("revisionHistoryLimit", _HISTORY)
    spec.setdefault("progressDeadlineSeconds", _PROGRESS_SECONDS)
    _default_strategy(ensure(spec, "strategy"), {"maxUnavailable": "25%", "maxSurge": "25%"})


def default_replica_set(replica_set: Object, default_pod_spec: PodSpecDefaults) -> None:
    _replicated(replica_set, default_pod_spec)
    _counted(replica_set, "replicas")


def default_stateful_set(stateful_set: Object, default_pod_spec: PodSpecDefaults) -> None:
    spec = _replicated(stateful_set, default_pod_spec)
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    spec.setdefault("revisionHistoryLimit", _HISTORY)
    spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})
    _default_strategy(ensure(spec, "updateStrategy"), {"partition": 0})
    for claim in spec.get("volumeClaimTemplates") or ():
        ensure(claim, "spec").setdefault("volumeMode", "Filesystem")
    _counted(stateful_set, "replicas", "availableReplicas")


def default_replication_controller(controller: Object, default_pod_spec: PodSpecDefaults) -> None:
    spec = _replicated(controller, default_pod_spec)
    if labels := dig(spec, "template.metadata.labels"):
        spec.setdefault("selector", dict(labels))
        meta = ensure(controller, "metadata")
        meta["labels"] = meta.get("labels") or dict(labels)
    _counted(controller, "replicas")


def default_daemon_set(daemon_set: Object, default_pod_spec: PodSpecDefaults) -> None:
    spec = ensure(daemon_set, "spec")
    default_pod_spec(ensure(ensure(spec, "template"), "spec"))
    spec.setdefault("revisionHistoryLimit", _HISTORY)
    _default_strategy(ensure(spec, "updateStrategy"), {"maxUnavailable": 1, "maxSurge": 0})
    _counted(daemon_set, "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


def _replicated(workload: Object, default_pod_spec: PodSpecDefaults) -> Object:
    spec = ensure(workload, "spec")
    default_pod_spec(ensure(ensure(spec, "template"), "spec"))
    spec.setdefault("replicas", 1)
    return spec


def _counted(workload: Object, *counts: str) -> None:
    """Of its status, what is there also while it is zero."""
    for count in counts:
        ensure(workload, "status").setdefault(count, 0)


def _default_strategy(strategy: Object, steps: Object) -> None:
    if not strategy.get("type"):
        strategy["type"] = _ROLLING
    if strategy["type"] == _ROLLING:
        rolling = ensure(strategy, "rollingUpdate")
        for key, value in steps.items():
            rolling.setdefault(key, value)
