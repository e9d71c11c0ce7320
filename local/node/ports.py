"""What a kubelet needs of the world: an API server to report to, and something that runs containers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from local.node.images import Missing, Refused
from local.node.podobject import NodeObject, PodContainer, PodObject


class ApiPort(Protocol):
    """Every method raises KubernetesFault (status 0: the server is away)."""

    async def patch_pod_status(self, pod: PodObject, status: dict[str, Any]) -> None:
        """Refused with 404 or 409 when this very pod (by uid) is gone."""

    async def delete_pod(self, pod: PodObject) -> None:
        """Remove the object at once; only a kubelet does this, when nothing of the pod is left."""

    async def read_node(self) -> NodeObject:
        """Our own Node as it is now."""

    def record(self, pod: PodObject, reason: str, message: str, *, warning: bool = False) -> None:
        """Queue an Event about the pod; never fails."""


class Exit(msgspec.Struct, frozen=True):
    """How a container ended: 128 + n for signal n."""

    code: int
    oom_killed: bool = False


class ContainerPort(Protocol):
    """One running container."""

    @property
    def container_id(self) -> str: ...

    async def wait(self) -> Exit:
        """Returns when the main process has ended and nothing of the container is left."""

    def terminate(self) -> None:
        """SIGTERM to the main process."""

    def kill(self) -> None:
        """SIGKILL to everything inside."""


class RuntimePort(Protocol):
    """Runs containers. Methods raise KernelFault when the machine refuses."""

    def make_pod(self, pod: PodObject) -> None:
        """Cgroup and private directory of a pod."""

    def start(self, pod: PodObject, container: PodContainer, restart_count: int) -> ContainerPort | Refused | Missing:
        """Start one container."""

    async def remove_pod(self, pod: PodObject) -> None:
        """Kill whatever is left and remove all but the logs."""

    def remove_logs(self, pod: PodObject) -> None:
        """The object is gone: so are its logs."""

    def keep_only(self, uids: set[str]) -> None:
        """Forget what an earlier run of the node left of other pods."""

    def log_file(self, pod: PodObject, container: str, restart_count: int) -> Path:
        """Where one run's output is."""

    def set_burstable(self, cpu_millis: int) -> None:
        """The CPU requests of all Burstable pods together."""


class Services(msgspec.Struct, frozen=True):
    """What every pod's worker shares."""

    api: ApiPort
    runtime: RuntimePort
    now: Callable[[], datetime]
    backoff_base_seconds: float = 10.0
