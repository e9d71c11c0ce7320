"""Requests of simulated nodes to the API server, as values: bodies, paths, and what a refusal means. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from embedded.node.objects.pod import PodObject
from embedded.node.objects.times import stamp
from embedded.node.registration import node_object
from kube.client import PatchKind, path_of
from kube.dialects.koordinator import nodemetric
from local.simnodes.lifecycle import moment
from local.simnodes.settings import Simulation
from model.condition import ConditionStatus, ConditionType
from model.nodemetric import NodeMetric
from model.reason import Reason, words

_NODES, _PODS, _LEASES = "v1/nodes", "v1/pods", "coordination.k8s.io/v1/leases"
_NODE_METRICS = "slo.koordinator.sh/v1alpha1/nodemetrics"
_GONE, _TAKEN = 404, 409


class ApiRequest(msgspec.Struct, frozen=True):
    """One request. `settled` are refusals with which nothing is left to do; on 404 and 409 others go in its place."""

    method: str
    path: str
    body: Any
    content_type: str = "application/json"
    settled: tuple[int, ...] = ()
    missing: tuple[ApiRequest, ...] = ()
    taken: tuple[ApiRequest, ...] = ()


class QueuedWrite(msgspec.Struct, frozen=True):
    """Requests in their order. A newer write with the same key takes the place of one that has not begun."""

    key: str
    requests: tuple[ApiRequest, ...]


def registration(simulation: Simulation, index: int, status: dict[str, Any]) -> QueuedWrite:
    """The Node with its whole status; one that is there already gets labels and status."""
    name, labels = simulation.name(index), simulation.labels_of(index)
    node = node_object.new_node(name, simulation.machine)
    node["metadata"]["labels"] |= labels
    node["status"] = status
    relabel = _patch(path_of(_NODES, name=name), {"metadata": {"labels": labels}})
    return QueuedWrite(
        f"node/{name}", (ApiRequest("POST", path_of(_NODES), node, taken=(relabel, _status(name, status))),)
    )


def node_status(
    simulation: Simulation, port: int, amounts: Mapping[str, int | None], now: float, since: float
) -> dict[str, Any]:
    """All a kubelet and an agent say of a node; `amounts` are the lent ones, None removes one."""
    at = moment(now)
    health = node_object.healthy(moment(since)).changed(moment(since), ready=True)
    status = node_object.status("", simulation.machine, port, health, at)
    status["addresses"] = status["addresses"][:1]
    status["nodeInfo"] |= {"containerRuntimeVersion": "simulated://1", "kubeletVersion": "v1.32.4-simulated"}
    lent = {name: None if amount is None else str(amount) for name, amount in amounts.items()}
    status["capacity"] |= {**simulation.amounts, **lent}
    status["allocatable"] |= {**simulation.amounts, **lent}
    status["conditions"].append(_lending_condition(at, moment(since)))
    return status


def _lending_condition(now: datetime, since: datetime) -> dict[str, str]:
    return {
        "type": ConditionType.COLOCATION_READY,
        "status": ConditionStatus.TRUE,
        "reason": Reason.LENDING_ACTIVE,
        "message": words(Reason.LENDING_ACTIVE),
        "lastHeartbeatTime": stamp(now),
        "lastTransitionTime": stamp(since),
    }


def changed_status(simulation: Simulation, index: int, status: dict[str, Any]) -> QueuedWrite:
    """A node that somebody deleted registers again, as a kubelet does."""
    name = simulation.name(index)
    renewed = registration(simulation, index, status).requests
    return QueuedWrite(f"node/{name}", (_status(name, status, renewed),))


def _status(name: str, status: dict[str, Any], missing: tuple[ApiRequest, ...] = ()) -> ApiRequest:
    path = path_of(_NODES, name=name, subresource="status")
    return _patch(path, {"status": status}, PatchKind.STRATEGIC, missing)


def lease(name: str, now: float, lease_seconds: float) -> QueuedWrite:
    body = node_object.lease(name, moment(now))
    body["spec"]["leaseDurationSeconds"] = int(lease_seconds)
    namespace = node_object.LEASE_NAMESPACE
    # Without that namespace nobody reads leases.
    create = ApiRequest("POST", path_of(_LEASES, namespace=namespace), body, settled=(_GONE, _TAKEN))
    path = path_of(_LEASES, namespace=namespace, name=name)
    return QueuedWrite(f"lease/{name}", (_patch(path, {"spec": body["spec"]}, missing=(create,)),))


def metric(name: str, uid: str, measured: NodeMetric, now: float) -> QueuedWrite:
    """The NodeMetric as the agent writes it. A cluster that does not define it does without."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    empty = {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeMetric",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {},
    }
    create = ApiRequest("POST", path_of(_NODE_METRICS), empty, settled=(_GONE, _TAKEN))
    path = path_of(_NODE_METRICS, name=name, subresource="status")
    write = _patch(path, {"status": nodemetric.status(measured, stamp(moment(now)))})
    again = msgspec.structs.replace(write, settled=(_GONE,))
    return QueuedWrite(f"metric/{name}", (msgspec.structs.replace(write, missing=(create, again)),))


def pod_status(pod: PodObject, status: dict[str, Any]) -> QueuedWrite:
    return QueuedWrite(f"pod/{pod.uid}", (_pod_status(pod, status),))


def pod_end(pod: PodObject, status: dict[str, Any]) -> QueuedWrite:
    """How it ended, then away with it."""
    options = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": pod.uid},
    }
    delete = ApiRequest("DELETE", _pod_path(pod), options, settled=(_GONE, _TAKEN))
    return QueuedWrite(f"pod/{pod.uid}", (_pod_status(pod, status), delete))


def _pod_status(pod: PodObject, status: dict[str, Any]) -> ApiRequest:
    # The uid makes a pod of the same name that came later answer 409 instead of taking this status.
    body = {"metadata": {"uid": pod.uid}, "status": status}
    found = _patch(_pod_path(pod, "status"), body, PatchKind.STRATEGIC)
    return msgspec.structs.replace(found, settled=(_GONE, _TAKEN))


def _pod_path(pod: PodObject, subresource: str = "") -> str:
    return path_of(_PODS, namespace=pod.metadata.namespace, name=pod.metadata.name, subresource=subresource)


def _patch(path: str, body: Any, kind: PatchKind = PatchKind.MERGE, missing: tuple[ApiRequest, ...] = ()) -> ApiRequest:
    return ApiRequest("PATCH", path, body, kind.value, missing=missing)
