"""Plan of removing Sublet from one object: values in, patches out."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kube import objects
from kube.dialects.upstream import core_objects
from model.condition import ConditionType
from model.fault import ConfigurationFault
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY

LENT_RESOURCES = (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)
_RESTORING = "restore"


class Unfinished(Exception):
    """A step did not come to its end in time; the text says which nodes, and what to do."""


class LentNode(msgspec.Struct, frozen=True):
    """Of a Node what is ours: the amounts under our names, and what its running pods request of them."""

    name: str
    offered: dict[str, Any]
    requested: dict[str, int]


def restores(daemon_set: dict[str, Any]) -> bool:
    containers = daemon_set["spec"]["template"]["spec"].get("initContainers") or ()
    return [container["name"] for container in containers] == [_RESTORING]


def restoring(daemon_set: dict[str, Any]) -> list[dict[str, Any]]:
    """A JSON patch: the agent's container once more as an init container that puts the originals back, and no guard,
    which would take the agent's rest for silence. Raises Unfinished where there is no container named agent."""
    spec = daemon_set["spec"]["template"]["spec"]
    agent = next((each for each in spec["containers"] if each["name"] == "agent"), None)
    if agent is None:
        raise Unfinished(
            "DaemonSet sublet-agent has no container named agent; run `sublet agent --restore` on each node"
        )
    first = copy.deepcopy(agent)
    first |= {"name": _RESTORING, "args": [*(agent.get("args") or []), "--restore", "--if-any"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe", "ports", "lifecycle"):
        first.pop(probe, None)
    all_at_once = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}}
    path = "/spec/template/spec"
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": daemon_set["metadata"]["resourceVersion"]},
        {"op": "add", "path": "/spec/updateStrategy", "value": all_at_once},
        {"op": "add", "path": f"{path}/initContainers", "value": [first]},
        {"op": "add", "path": f"{path}/containers", "value": [agent]},
    ]


def has_restored(pod: dict[str, Any]) -> bool:
    for status in (pod.get("status") or {}).get("initContainerStatuses") or ():
        if status.get("name") == _RESTORING:
            ended = (status.get("state") or {}).get("terminated") or {}
            return bool(ended) and ended.get("exitCode") == 0
    return False


def held_by_pods(pods: Iterable[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Node → resource → what its pods that have not ended request."""
    held: dict[str, dict[str, int]] = {}
    for raw in pods:
        try:
            pod = core_objects.pod(msgspec.convert(raw, objects.Pod, strict=False))
        except (msgspec.ValidationError, ConfigurationFault):
            continue  # no kubelet admitted it
        if pod.spec.node_name and not pod.terminal:
            of_node = held.setdefault(pod.spec.node_name, {})
            for name, amount in _requested(pod.spec.requests):
                of_node[name] = of_node.get(name, 0) + amount
    return {node: amounts for node, amounts in held.items() if amounts}


def _requested(requests: Any) -> Iterator[tuple[str, int]]:
    for name in LENT_RESOURCES:
        if amount := requests[name]:
            yield name, amount


def cleaned(node: LentNode) -> dict[str, Any]:
    """Null removes; a kubelet that restarts must be able to admit what runs."""
    amounts: dict[str, Any] = {key: None for key in node.offered if key not in node.requested}
    amounts |= {key: str(amount) for key, amount in node.requested.items()}
    condition = {"type": ConditionType.COLOCATION_READY, "$patch": "delete"}
    return {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [condition]}}
