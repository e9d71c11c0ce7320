"""Plugin ssh: a pair of keys of the job's own, by which its pods reach each other.

Source: volcano pkg/controllers/job/plugins/ssh. The keys are made where the Secret is, since they are random.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.core.peers import Peers, pod_name

PRIVATE, PUBLIC, AUTHORIZED, CONFIG = "id_rsa", "id_rsa.pub", "authorized_keys", "config"
FOLDER = "/root/.ssh"
_FOLDER_FLAG = "ssh-key-file-path"
_PORT_FLAG = "ssh-port"


def secret_name(job: str) -> str:
    """The Secret of a job's keys."""
    return f"{job}-ssh"


def config(peers: Peers, flags: Mapping[str, str]) -> str:
    """ssh's configuration: every host of the job, whose keys nobody knows."""
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    port = flags.get(_PORT_FLAG, "")
    lines += [f"Port {port}"] if port.isascii() and port.isdigit() else []
    for member in peers.members:
        lines += [f"Host {pod_name(peers.job, member)}", f"  HostName {peers.host(member)}"]
    return "\n".join(lines) + "\n"


def volume(job: str) -> dict[str, Any]:
    """The Secret as files that ssh accepts."""
    name = secret_name(job)
    files = ((PRIVATE, PRIVATE), (PUBLIC, PUBLIC), (PUBLIC, AUTHORIZED), (CONFIG, CONFIG))
    items = [{"key": key, "path": path} for key, path in files]
    return {"name": name, "secret": {"secretName": name, "items": items, "defaultMode": 0o600}}


def mount(job: str, flags: Mapping[str, str]) -> dict[str, Any]:
    """Where containers see it."""
    return {"name": secret_name(job), "mountPath": flags.get(_FOLDER_FLAG, FOLDER)}
