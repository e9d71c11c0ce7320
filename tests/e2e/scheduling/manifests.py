"""Pods, gangs and volumes for the scheduler, each with what is usual unless told otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

Manifest: TypeAlias = dict[str, Any]

GANG_LABEL = "pod-group.scheduling.sigs.k8s.io"
GANG = "gang.scheduling.koordinator.sh/"
HOSTNAME = "kubernetes.io/hostname"


def listed(*parts: Manifest | list[Manifest]) -> str:
    """One document for `kubectl apply -f -`."""
    items = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def pod(
    name: str,
    cpu: str = "1",
    labels: Mapping[str, str] = {},
    annotations: Mapping[str, str] = {},
    container: Mapping[str, Any] = {},
    **spec: Any,
) -> Manifest:
    """Of one container; more requests and host ports come in `container`."""
    requests = {"cpu": cpu, "memory": "64Mi", **container.get("requests", {})}
    main = {"name": "main", "image": "any", "resources": {"requests": requests}, "ports": container.get("ports", [])}
    usual = {"schedulerName": "koord-scheduler", "terminationGracePeriodSeconds": 1, "containers": [main]}
    metadata = {"name": name, "labels": dict(labels), "annotations": dict(annotations)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": usual | spec}


def gang(name: str, minimum: int, annotations: Mapping[str, str] = {}, **spec: Any) -> Manifest:
    """Koordinator's PodGroup."""
    metadata = {"name": name, "annotations": dict(annotations)}
    kind = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup"}
    return {**kind, "metadata": metadata, "spec": {"minMember": minimum, **spec}}


def members(name: str, count: int, **pod_: Any) -> list[Manifest]:
    """NAME-0, NAME-1, … of gang NAME."""
    return [pod(f"{name}-{index}", labels={GANG_LABEL: name}, **pod_) for index in range(count)]


def required(key: str, operator: str, *values: str) -> Manifest:
    """A required node affinity of one expression."""
    return _required({"matchExpressions": [_expression(key, operator, values)]})


def required_name(name: str) -> Manifest:
    """The node of this name, by field."""
    return _required({"matchFields": [_expression("metadata.name", "In", (name,))]})


def preferred(key: str, *values: str) -> Manifest:
    """A preferred node affinity."""
    term = {"matchExpressions": [_expression(key, "In", values)]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}}


def company(kind: str, app: str, topology: str = HOSTNAME) -> Manifest:
    """`podAffinity` or `podAntiAffinity` with pods labelled `app`."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(key: str, app: str) -> list[Manifest]:
    """At most one pod more in one domain than in another."""
    selector = {"matchLabels": {"app": app}}
    return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


def claim(name: str, volume: str = "") -> Manifest:
    """A claim, bound where a volume is named."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    bound = {"volumeName": volume} if volume else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": spec | bound,
    }


def volume(name: str, claim_: str, node: str) -> Manifest:
    """A volume that only one node has."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": "default", "name": claim_},
        "nodeAffinity": {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [_expression(HOSTNAME, "In", (node,))]}]}
        },
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def mounts(claim_: str) -> list[Manifest]:
    """A pod's volumes."""
    return [{"name": "data", "persistentVolumeClaim": {"claimName": claim_}}]


def _expression(key: str, operator: str, values: tuple[str, ...]) -> Manifest:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _required(term: Manifest) -> Manifest:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
