"""A start: nodes and pods as the API server lists them, bytes in, until the first decision is right."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Mapping

import msgspec

from bench.schedule.cluster import SCHEDULER
from bench.schedule.effort import SchedulingEffort, tell
from kube import objects
from kube.informer import Change, ChangeKind
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cycle import Cycle
from scheduler.settings import SchedulerSettings

_LABELS = {"app": "service", "koordinator.sh/qosClass": "LS"}
_NODE_CPU = 64


class Cold(msgspec.Struct, frozen=True):
    """Seconds from the listed bytes to the first decision; `plain` is json.loads of the same bytes alone."""

    nodes: int
    pods: int
    bytes_listed: int
    decode: float
    turn: float
    plain: float
    correct: bool

    @property
    def seconds(self) -> float:
        return self.decode + self.turn


def measure_cold(effort: SchedulingEffort) -> Cold:
    """All nodes but one are full, so that there is one right answer."""
    tell(f"starting with {effort.cold_nodes} nodes and {effort.cold_pods} pods")
    nodes = [_node(number, effort.cold_nodes) for number in range(effort.cold_nodes)]
    pods = [_pod(number, effort) for number in range(effort.cold_pods)]
    pods.append(_pending())
    gc.collect()
    gc.disable()  # as the scheduler does until its first turn is over
    begun = time.perf_counter()
    inbox: list[facts.Fact] = [_seen(facts.NodeSeen, each, objects.Node) for each in nodes]
    inbox += [_seen(facts.PodSeen, each, objects.Pod) for each in pods]
    decoded = time.perf_counter()
    settings = SchedulerSettings()
    turn = Cycle(ClusterCache(settings.served), settings).turn(inbox, 1_000.0)
    ended = time.perf_counter()
    gc.enable()
    placed = [bind.placement.node for batch in turn.batches for bind in batch.binds]
    for each in pods:
        json.loads(each)
    plain = time.perf_counter() - ended
    size = sum(map(len, nodes)) + sum(map(len, pods))
    right = placed == [f"node-{effort.cold_nodes - 1:05d}"]
    return Cold(effort.cold_nodes, effort.cold_pods, size, decoded - begun, ended - decoded, plain, right)


def _seen(fact: type[facts.NodeSeen] | type[facts.PodSeen], content: bytes, kind: type[msgspec.Struct]) -> facts.Fact:
    change: Change[object] = Change(ChangeKind.ADDED, msgspec.json.decode(content, type=kind))
    return fact(change)  # type: ignore[arg-type]


def _node(number: int, count: int) -> bytes:
    """The last one is empty."""
    amounts = {"cpu": str(_NODE_CPU), "memory": "256Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"node-{number:05d}", "topology.kubernetes.io/zone": f"z{number % 8}"}
    metadata = {"name": f"node-{number:05d}", "uid": f"node-{number}", "resourceVersion": "1", "labels": labels}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return msgspec.json.encode({"metadata": metadata, "spec": {}, "status": status})


def _pod(number: int, effort: SchedulingEffort) -> bytes:
    """One of those that fill the other nodes between them."""
    others = max(1, effort.cold_nodes - 1)
    each = -(-effort.cold_pods // others)
    amounts = {"cpu": f"{_NODE_CPU * 1000 // each}m", "memory": "1Gi"}
    container = {
        "name": "main",
        "image": "registry.example.com/team/service:1.2.3",
        "resources": {"requests": amounts, "limits": amounts},
        "env": [{"name": f"VALUE_{index}", "value": "a value of some length"} for index in range(4)],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
    }
    spec = {"nodeName": f"node-{number % others:05d}", "containers": [container], "priority": 9000}
    status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "podIP": "10.0.0.1"}
    return _encoded(f"service-{number}", spec, status)


def _pending() -> bytes:
    container = {"name": "main", "resources": {"requests": {"cpu": "8", "memory": "1Gi"}}}
    return _encoded("next", {"schedulerName": SCHEDULER, "containers": [container]}, {"phase": "Pending"})


def _encoded(name: str, spec: Mapping[str, object], status: Mapping[str, object]) -> bytes:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "resourceVersion": "1",
        "labels": _LABELS,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "service", "uid": "rs", "controller": True}
        ],
    }
    return msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status})
