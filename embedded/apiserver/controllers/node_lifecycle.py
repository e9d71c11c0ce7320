"""The node life cycle: a node that is silent becomes Unknown, and taints follow from what nodes are.

https://kubernetes.io/docs/concepts/architecture/nodes/#node-controller
"""

from __future__ import annotations

import msgspec

from embedded.apiserver.apimachinery.objects import Object, ensure, parse_time, rfc3339, set_condition
from embedded.apiserver.apimachinery.resource_types import LEASES, NODES, PODS
from embedded.apiserver.reconciling.event_recorder import record_event
from embedded.apiserver.reconciling.pods_by_node import PodsByNode
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.registry.taints import NO_EXECUTE, Taint, surplus_and_missing, wanted_taints, with_taints
from embedded.apiserver.storage.records import Change, Event, Record

MONITOR_SECONDS = 5.0
GRACE_SECONDS = 40.0
STARTUP_GRACE_SECONDS = 60.0
_COMPONENT = "node-controller"
_LEASE_NAMESPACE = "kube-node-lease"
_JUDGED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class _Shape(msgspec.Struct, rename="camel", frozen=True, gc=False): ...


class _Condition(_Shape, frozen=True):
    type: str
    status: str
    last_heartbeat_time: str | None = None


class _Metadata(_Shape, frozen=True):
    creation_timestamp: str = ""


class _Spec(_Shape, frozen=True):
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None


class _Status(_Shape, frozen=True):
    conditions: tuple[_Condition, ...] | None = None


class _Node(_Shape, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _LeaseSpec(_Shape, frozen=True):
    lease_duration_seconds: int | None = None


class _Lease(_Shape, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


_NODE = msgspec.json.Decoder(_Node)
_LEASE = msgspec.json.Decoder(_Lease)


class _Known(msgspec.Struct, gc=False):
    """What is remembered of one node; `heard` is this server's time of its last sign of life."""

    heard: float
    heartbeat: str | None = None  # as the Ready condition states it
    ready: str = ""  # status of the Ready condition; empty before the first
    lease_seconds: int = 0
    no_execute: tuple[Taint, ...] = ()

    def silent(self, now: float) -> bool:
        grace = max(GRACE_SECONDS, self.lease_seconds) if self.ready else STARTUP_GRACE_SECONDS
        return self.ready != "Unknown" and now - self.heard > grace


class NodeLife:
    """Judges nodes by their leases and heartbeats; `changed` names those whose NoExecute taints became others."""

    def __init__(self, resources: Resources, pods: PodsByNode) -> None:
        self._resources = resources
        self._pods = pods
        self._nodes: dict[str, _Known] = {}
        self._dirty: set[str] = set()
        self._next_look = 0.0
        self.lost_pods = WorkQueue()
        self.changed: set[str] = set()

    def react(self, type_id: str, event: Event) -> None:
        record, gone = event.record, event.change is Change.DELETED
        if type_id == LEASES.id and record.namespace == _LEASE_NAMESPACE and not gone:
            self._renewed(record)
        elif type_id == NODES.id and gone:
            self._nodes.pop(record.name, None)
            self.changed.add(record.name)
        elif type_id == NODES.id:
            self._node_changed(record)

    def _renewed(self, lease: Record) -> None:
        known = self._nodes.get(lease.name)
        if known is not None:
            known.heard = self._resources.clock()
            known.lease_seconds = _LEASE.decode(lease.body).spec.lease_duration_seconds or 0

    def _node_changed(self, record: Record) -> None:
        node, name = _NODE.decode(record.body), record.name
        known = self._nodes.get(name)
        if known is None:
            known = self._nodes[name] = _Known(self._resources.clock())
        ready = next((c for c in node.status.conditions or () if c.type == "Ready"), None)
        before, known.ready = known.ready, ready.status if ready else ""
        heartbeat = ready.last_heartbeat_time if ready else None
        if heartbeat != known.heartbeat or known.ready not in (before, "Unknown"):
            known.heard, known.heartbeat = self._resources.clock(), heartbeat
        if before == "True" and known.ready != "True":
            self._lost(record)
        no_execute = tuple(taint for taint in node.spec.taints or () if taint.effect == NO_EXECUTE)
        if no_execute != known.no_execute:
            known.no_execute = no_execute
            self.changed.add(name)
        if any(_differences(node)):
            self._dirty.add(name)

    def no_execute_taints(self, node: str) -> tuple[Taint, ...]:
        known = self._nodes.get(node)
        return known.no_execute if known else ()

    def next_due(self) -> float | None:
        return self._next_look if self._nodes else None

    @property
    def idle(self) -> bool:
        return not self._dirty

    def take_due(self) -> list[str]:
        """Nodes whose taints or conditions may have to change."""
        now = self._resources.clock()
        if now >= self._next_look:
            self._next_look = now + MONITOR_SECONDS
            self._dirty.update(name for name, known in self._nodes.items() if known.silent(now))
        due, self._dirty = sorted(self._dirty), set()
        return due

    def again(self, names: list[str]) -> None:
        """Nodes that were taken but left for later."""
        self._dirty.update(names)

    def advance(self, name: str) -> None:
        """Bring one node's conditions and taints up to date."""
        known, now = self._nodes.get(name), self._resources.clock()
        record = self._resources.store.get(NODES.id, "", name)
        if known is None or record is None:
            return
        if known.silent(now):
            self._resources.update(NODES, "", name, lambda node: _silenced(node, now), subresource="status")
            record = self._resources.store.get(NODES.id, "", name) or record
        surplus, missing = _differences(_NODE.decode(record.body))
        if surplus or missing:
            self._resources.update(NODES, "", name, lambda node: _tainted(node, surplus, missing, now))

    def _lost(self, record: Record) -> None:
        """Nothing that runs there can be relied on: its pods are not Ready."""
        node = self._resources.decoded(NODES, record)
        message = f"Node {record.name} status is now: NodeNotReady"
        record_event(self._resources, node, "NodeNotReady", message, _COMPONENT)
        for key in self._pods.on(record.name):
            self.lost_pods.now(key)

    def advance_pod(self, key: Key) -> None:
        """Take a pod of a lost node for not ready, unless the node has come back."""
        pod, now = self._resources.find(PODS, *key), self._resources.clock()
        known = self._nodes.get(pod["spec"].get("nodeName", "")) if pod else None
        if pod is None or known is None or known.ready == "True" or not _is_ready(pod):
            return
        wanted = {"type": "Ready", "status": "False"}

        def change(held: Object) -> Object:
            set_condition(held, wanted, now)
            return held

        self._resources.update(PODS, *key, change, subresource="status")
        record_event(self._resources, pod, "NodeNotReady", "Node is not ready", _COMPONENT, "Warning")


def _is_ready(pod: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ())


def _differences(node: _Node) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    conditions = {c.type: c.status for c in node.status.conditions or ()}
    wanted = wanted_taints(conditions, bool(node.spec.unschedulable))
    held = [(taint.key, taint.effect) for taint in node.spec.taints or ()]
    return surplus_and_missing(held, wanted, judged="Ready" in conditions)


def _tainted(node: Object, surplus: set[tuple[str, str]], missing: set[tuple[str, str]], now: float) -> Object:
    spec = ensure(node, "spec")
    spec["taints"] = with_taints(spec.get("taints") or [], surplus, missing, now)
    return node


def _silenced(node: Object, now: float) -> Object:
    """Every condition a kubelet states is Unknown; one it never stated says so."""
    held = {c["type"]: c for c in ensure(node, "status").get("conditions") or ()}
    for kind in _JUDGED:
        stated = kind in held
        heartbeat = held[kind].get("lastHeartbeatTime") if stated else node["metadata"]["creationTimestamp"]
        wanted = {
            "type": kind,
            "status": "Unknown",
            "reason": "NodeStatusUnknown" if stated else "NodeStatusNeverUpdated",
            "message": "Kubelet stopped posting node status." if stated else "Kubelet never posted node status.",
            "lastHeartbeatTime": heartbeat if parse_time(heartbeat) is not None else rfc3339(now),
        }
        set_condition(node, wanted, now)
    return node
