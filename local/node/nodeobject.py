"""The Node object's fields that a kubelet owns. Keys that others add (kubernetes.io/batch-…) never appear here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from local.node.environment import HOST_ADDRESS
from local.node.machine import Machine
from local.node.metatime import stamp
from model.quantity import format_millis

POD_LIMIT = 110
NOT_READY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40

# Condition, then reason and message while it is False, and while it is True.
_PRESSURES = {
    "MemoryPressure": (
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
}


class Health(msgspec.Struct, frozen=True):
    """What the node says of itself. `since` has, by condition, when it last changed."""

    ready: bool
    pressures: frozenset[str]
    since: Mapping[str, datetime]

    def changed(self, now: datetime, *, ready: bool | None = None, pressures: frozenset[str] | None = None) -> Health:
        """The same with other values; what they change has changed now."""
        new_ready = self.ready if ready is None else ready
        new_pressures = self.pressures if pressures is None else pressures
        moved = dict.fromkeys(self.pressures ^ new_pressures, now)
        if new_ready != self.ready:
            moved["Ready"] = now
        return Health(new_ready, new_pressures, {**self.since, **moved})


def healthy(now: datetime) -> Health:
    """At the start: not ready yet, and short of nothing."""
    return Health(False, frozenset(), dict.fromkeys(("Ready", *_PRESSURES), now))


def labels(name: str, machine: Machine) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine.architecture,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": machine.architecture,
    }


def new_node(name: str, machine: Machine) -> dict[str, Any]:
    """A Node for the first registration; nothing is scheduled here until it is Ready."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels(name, machine)},
        "spec": {"taints": [{"key": NOT_READY_TAINTS[0], "effect": "NoSchedule"}]},
    }


def amounts(machine: Machine) -> dict[str, str]:
    """Our own keys of capacity and allocatable; all of it is allocatable."""
    return {
        "cpu": format_millis(machine.cpu_millis),
        "memory": f"{machine.memory_bytes // 1024}Ki",
        "ephemeral-storage": f"{machine.storage_bytes // 1024}Ki",
        "pods": str(POD_LIMIT),
    }


def status(name: str, machine: Machine, log_port: int, health: Health, now: datetime) -> dict[str, Any]:
    """The body of a strategic patch of `status`."""
    return {
        "capacity": amounts(machine),
        "allocatable": amounts(machine),
        "addresses": [{"type": "InternalIP", "address": HOST_ADDRESS}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": log_port}},
        "nodeInfo": {
            "architecture": machine.architecture,
            "bootID": machine.boot_id,
            "containerRuntimeVersion": f"process://{machine.sublet_version}",
            "kernelVersion": machine.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": f"v{machine.sublet_version}-sublet",
            "machineID": machine.machine_id,
            "operatingSystem": "linux",
            "osImage": machine.os_image,
            "systemUUID": machine.machine_id,
        },
        "conditions": conditions(health, now),
    }


def conditions(health: Health, now: datetime) -> list[dict[str, str]]:
    readiness = (
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
        if health.ready
        else ("Ready", "False", "KubeletNotReady", "the process node is not running pods now")
    )
    rows = [
        (kind, str(kind in health.pressures), *words[kind in health.pressures]) for kind, words in _PRESSURES.items()
    ]
    return [
        {
            "type": kind,
            "status": holds,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": stamp(now),
            "lastTransitionTime": stamp(health.since[kind]),
        }
        for kind, holds, reason, message in (*rows, readiness)
    ]


def lease(name: str, now: datetime) -> dict[str, Any]:
    """The node's heartbeat in kube-node-lease."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": _LEASE_SECONDS,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
