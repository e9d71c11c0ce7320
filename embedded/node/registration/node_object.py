"""The Node object's fields that a kubelet owns. Keys that others add (kubernetes.io/batch-…) never appear here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from ipaddress import ip_address
from typing import Any

import msgspec

from embedded.node.machine.facts import Machine
from embedded.node.objects.times import stamp
from embedded.quantity import format_millis

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


def true_amounts(machine: Machine) -> dict[str, str] | None:
    """What is really there where the Node says something else."""
    if not machine.true_cpu_millis:
        return None
    return {**amounts(machine), **_compute(machine.true_cpu_millis, machine.true_memory_bytes)}


def new_node(
    name: str, machine: Machine, pod_cidr: str = "", annotations: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """A Node for the first registration; nothing is scheduled here until it is Ready."""
    told = {key: text for key, text in (annotations or {}).items() if text is not None}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels(name, machine), "annotations": told},
        "spec": {"taints": [{"key": NOT_READY_TAINTS[0], "effect": "NoSchedule"}], **pod_range(pod_cidr)},
    }


def pod_range(pod_cidr: str) -> dict[str, Any]:
    """Of `spec`: where the addresses of the node's pods are from."""
    return {"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]} if pod_cidr else {}


def amounts(machine: Machine) -> dict[str, str]:
    """Our own keys of capacity and allocatable; all of it is allocatable."""
    return {
        **_compute(machine.cpu_millis, machine.memory_bytes),
        "ephemeral-storage": f"{machine.storage_bytes // 1024}Ki",
        "pods": str(POD_LIMIT),
    }


def _compute(cpu_millis: int, memory_bytes: int) -> dict[str, str]:
    return {"cpu": format_millis(cpu_millis), "memory": f"{memory_bytes // 1024}Ki"}


def status(name: str, machine: Machine, log_port: int, health: Health, now: datetime) -> dict[str, Any]:
    """The body of a strategic patch of `status`."""
    return {
        "capacity": amounts(machine),
        "allocatable": amounts(machine),
        "addresses": _addresses(name, machine.address),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": log_port}},
        "nodeInfo": {
            "architecture": machine.architecture,
            "bootID": machine.boot_id,
            "containerRuntimeVersion": f"process://{machine.software_version}",
            "kernelVersion": machine.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": f"v{machine.software_version}-sublet",
            "machineID": machine.machine_id,
            "operatingSystem": "linux",
            "osImage": machine.os_image,
            "systemUUID": machine.machine_id,
        },
        "conditions": conditions(health, now),
    }


def _addresses(name: str, address: str) -> list[dict[str, str]]:
    """The name is told where nobody looks it up: another API server asks a Hostname before an InternalIP."""
    names = [{"type": "Hostname", "address": name}] if ip_address(address).is_loopback else []
    return [{"type": "InternalIP", "address": address}, *names]


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
