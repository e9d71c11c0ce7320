"""Plugin svc: host names by a headless Service, and the hosts of each task in a ConfigMap and in variables.

Source: volcano pkg/controllers/job/plugins/svc. Names are published before pods are ready, with or without Volcano's
flag: processes look for each other while they start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.core.peers import Peers

FOLDER = "/etc/volcano"


def config_map_name(job: str) -> str:
    """The ConfigMap of a job's hosts."""
    return f"{job}-svc"


def hosts(peers: Peers, tasks: tuple[str, ...]) -> dict[str, str]:
    """The ConfigMap's data: `worker.host` with a line a host, and what the variables are."""
    data: dict[str, str] = {}
    for task in tasks:
        names = [peers.host(member) for member in peers.of(task)]
        key = task.replace("-", "_")
        data[f"{key}.host"] = "\n".join(names)
        data[f"VC_{key.upper()}_HOSTS"] = ",".join(names)
        data[f"VC_{key.upper()}_NUM"] = str(len(names))
    return data


def references(job: str, data: Mapping[str, str]) -> list[dict[str, Any]]:
    """Entries of a container's env that take the variables from the ConfigMap."""
    name = config_map_name(job)
    keys = [key for key in data if key.startswith("VC_")]
    return [{"name": key, "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}} for key in keys]


def network_policy(selector: Mapping[str, str]) -> dict[str, Any]:
    """Only the job's own pods reach its pods."""
    own = {"podSelector": {"matchLabels": dict(selector)}}
    return {**own, "ingress": [{"from": [own]}], "policyTypes": ["Ingress"]}
