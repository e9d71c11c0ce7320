"""Clusters in a few words: what tests/scheduler/cases/*.yaml say, as Kubernetes objects.

    nodes:   {n1: {cpu: 4, memory: 8Gi, labels: {zone: a}, taints: [gpu=yes:NoSchedule], unschedulable: true}}
    pods:    {p1: {cpu: 1, node: n1, gang: g, class: high, priority: 5, age: 60, labels: {}, select: {zone: a}}}
    gangs:   {g: {min: 2, timeout: 300, mode: NonStrict, groups: [default/a]}}
    classes: {high: 1000, never: {value: 1000, policy: Never}}
    budgets: {web: {match: {app: web}, min: 1}}
    metrics: {n1: {cpu: 2, memory: 1Gi}}
    objects: [whole manifests]

Words that are not known are resources, in short or in full. `count: 3` stands for name-0 to name-2. A name without a
namespace is in `default`. `age` is seconds before the time of the decision.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
_SHORT = {
    "batch-cpu": "kubernetes.io/batch-cpu",
    "batch-memory": "kubernetes.io/batch-memory",
    "mid-cpu": "kubernetes.io/mid-cpu",
    "mid-memory": "kubernetes.io/mid-memory",
    "disk": "ephemeral-storage",
    "gpu": "nvidia.com/gpu",
}
_GANG = "gang.scheduling.koordinator.sh/"
_LABEL = "pod-group.scheduling.sigs.k8s.io"


def manifests(given: Mapping[str, Any]) -> Iterator[Object]:
    """Every object of a case, those of the pods last."""
    makers = {
        "classes": _priority_class,
        "nodes": _node,
        "metrics": _metric,
        "budgets": _budget,
        "gangs": _gang,
        "pods": _pod,
    }
    unknown = given.keys() - {*makers, "objects"}
    assert not unknown, f"a case says {sorted(unknown)}"
    yield from given.get("objects", ())
    for section, make in makers.items():
        for name, words in (given.get(section) or {}).items():
            told = dict(words) if isinstance(words, dict) else words
            for each in _numbered(name, told):
                yield make(each, dict(told) if isinstance(told, dict) else told)


def full(name: str) -> str:
    return name if "/" in name else f"default/{name}"


def _numbered(name: str, words: Any) -> list[str]:
    count = words.pop("count", None) if isinstance(words, dict) else None
    return [name] if count is None else [f"{name}-{index}" for index in range(count)]


def _metadata(name: str, words: Object) -> Object:
    namespace, _, own = full(name).partition("/")
    metadata: Object = {"name": own, "namespace": namespace}
    metadata |= {key: words.pop(key) for key in ("labels", "annotations") if key in words}
    if "age" in words:
        metadata["creationTimestamp"] = _time(words.pop("age"))
    return metadata


def _time(age: float) -> str:
    return datetime.fromtimestamp(NOW - age, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _amounts(words: Mapping[str, Any]) -> Object:
    return {_SHORT.get(name, name): amount for name, amount in words.items()}


def _priority_class(name: str, words: Any) -> Object:
    told = words if isinstance(words, dict) else {"value": words}
    made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    optional = {"preemptionPolicy": told.get("policy"), "globalDefault": told.get("default", False)}
    return made | {"value": told["value"]} | {key: value for key, value in optional.items() if value}


def _node(name: str, words: Object) -> Object:
    metadata = _metadata(name, words)
    del metadata["namespace"]
    spec = {
        "taints": [_taint(text) for text in words.pop("taints", ())],
        "unschedulable": words.pop("unschedulable", False),
    }
    amounts = _amounts({"pods": 110} | words)
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _taint(text: str) -> Object:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _toleration(told: Any) -> Object:
    """`*` tolerates everything, `key=value:Effect` one taint, `key` or `key:Effect` any value."""
    if isinstance(told, dict):
        return told
    if told == "*":
        return {"operator": "Exists"}
    pair, _, effect = told.partition(":")
    key, equal, value = pair.partition("=")
    found: Object = {"key": key, "effect": effect} if effect else {"key": key}
    return found | ({"operator": "Equal", "value": value} if equal else {"operator": "Exists"})


def _metric(name: str, words: Object) -> Object:
    status = {"updateTime": _time(words.pop("age", 10)), "nodeMetric": {"nodeUsage": {"resources": words}}}
    kind = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": name}}
    return kind | {"status": status}


def _budget(name: str, words: Object) -> Object:
    metadata = _metadata(name, words)
    spec: Object = {"selector": {"matchLabels": words["match"]}}
    spec |= {key: words[word] for word, key in (("min", "minAvailable"), ("max", "maxUnavailable")) if word in words}
    made: Object = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    return made | ({"status": {"disruptionsAllowed": words["allowed"]}} if "allowed" in words else {})


def _gang(name: str, words: Object) -> Object:
    metadata = _metadata(name, words)
    metadata["annotations"] = {**metadata.get("annotations", {}), **_gang_annotations(words)}
    spec = {"minMember": words["min"]} | ({"scheduleTimeoutSeconds": words["timeout"]} if "timeout" in words else {})
    made = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": metadata, "spec": spec}
    return made | ({"status": {"phase": words["phase"]}} if "phase" in words else {})


def _gang_annotations(words: Mapping[str, Any]) -> dict[str, str]:
    told = {"mode": "mode", "match": "match-policy"}
    found = {_GANG + key: str(words[word]) for word, key in told.items() if word in words}
    if "groups" in words:
        found[_GANG + "groups"] = json.dumps([full(one) for one in words["groups"]])
    if "topology" in words:
        layers = [{"layer": layer, "strategy": strategy} for layer, strategy in words["topology"].items()]
        found[_GANG + "network-topology-spec"] = json.dumps({"gatherStrategy": layers})
    return found


def _pod(name: str, words: Object) -> Object:
    metadata = _metadata(name, words)
    if words.pop("deleting", False):
        metadata["deletionTimestamp"] = _time(1)
    if "gang" in words:
        metadata["labels"] = {**metadata.get("labels", {}), _LABEL: words.pop("gang")}
    status = {"phase": words.pop("phase", "Running" if "node" in words else "Pending")} | words.pop("status", {})
    spec = _pod_spec(words)
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}
    return made | {"spec": spec | {"containers": _containers(words)}}


def _pod_spec(words: Object) -> Object:
    named = {
        "node": "nodeName",
        "class": "priorityClassName",
        "priority": "priority",
        "policy": "preemptionPolicy",
        "scheduler": "schedulerName",
        "select": "nodeSelector",
        "affinity": "affinity",
        "spread": "topologySpreadConstraints",
        "overhead": "overhead",
    }
    spec = {key: words.pop(word) for word, key in named.items() if word in words}
    spec["tolerations"] = [_toleration(told) for told in words.pop("tolerations", ())]
    spec["schedulingGates"] = [{"name": gate} for gate in words.pop("gates", ())]
    spec["volumes"] = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in words.pop("claims", ())]
    spec["initContainers"] = [_init(index, told) for index, told in enumerate(words.pop("init", ()))]
    return spec | words.pop("spec", {})


def _init(index: int, told: Mapping[str, Any]) -> Object:
    amounts = {name: amount for name, amount in told.items() if name != "sidecar"}
    sidecar = {"restartPolicy": "Always"} if told.get("sidecar") else {}
    return {"name": f"init-{index}", "resources": {"requests": _amounts(amounts)}} | sidecar


def _containers(words: Object) -> list[Object]:
    """One with everything, or those that `containers` lists."""
    ports = [{"containerPort": 80, **_port(told)} for told in words.pop("ports", ())]
    limits = {"limits": _amounts(words.pop("limits"))} if "limits" in words else {}
    if "containers" in words:
        several = words.pop("containers")
        assert not words, f"a case says {sorted(words)} beside containers"
        return [{"name": f"c{i}", "resources": {"requests": _amounts(told)}} for i, told in enumerate(several)]
    return [{"name": "main", "ports": ports, "resources": {"requests": _amounts(words), **limits}}]


def _port(told: Any) -> Object:
    return told if isinstance(told, dict) else {"hostPort": told}
