"""What a kubelet needs of the world: an API server to report to, and something that runs containers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec
from aiohttp import web

from embedded.node.images.commands import Missing, Refused
from embedded.node.objects.pod import NodeObject, PodContainer, PodObject
from embedded.node.objects.sources import SourceRef, Sources, TokenRef
from embedded.node.objects.tokens import Token

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
"""What answers one path of a node's HTTPS server."""


class ApiPort(Protocol):
    """Every method raises KubernetesFault (status 0: the server is away)."""

    async def patch_pod_status(self, pod: PodObject, status: dict[str, Any]) -> None:
        """Refused with 404 or 409 when this very pod (by uid) is gone."""

    async def delete_pod(self, pod: PodObject) -> None:
        """Remove the object at once; only a kubelet does this, when nothing of the pod is left."""

    async def read_node(self) -> NodeObject:
        """Our own Node as it is now."""

    async def read_source(self, namespace: str, ref: SourceRef) -> Mapping[str, bytes] | None:
        """Key → value of a ConfigMap or Secret; None when there is none."""

    async def request_token(self, pod: PodObject, ref: TokenRef) -> Token:
        """A token of the pod's account, bound to the pod."""

    def record(self, pod: PodObject, reason: str, message: str, *, warning: bool = False) -> None:
        """Queue an Event about the pod; never fails."""


class NodePort(Protocol):
    """Our Node and its lease on the API server; every method raises KubernetesFault (status 0: the server is away)."""

    async def read_node(self) -> NodeObject: ...

    async def create_node(self, body: dict[str, Any]) -> bool:
        """False where there is one of that name already."""

    async def patch_node(self, body: dict[str, Any]) -> None:
        """As a merge patch."""

    async def patch_node_status(self, status: dict[str, Any]) -> None:
        """As a strategic merge patch: conditions and addresses of others stay."""

    async def create_lease(self, body: dict[str, Any]) -> None: ...

    async def patch_lease(self, body: dict[str, Any]) -> None:
        """As a merge patch."""


class Exit(msgspec.Struct, frozen=True):
    """How a container ended: 128 + n for signal n."""

    code: int
    oom_killed: bool = False


class Execution(msgspec.Struct, frozen=True):
    """How a command beside a container ended; no code: it had to be killed. `output` is its beginning."""

    code: int | None
    output: bytes = b""


class Ends(msgspec.Struct, frozen=True):
    """Which ends of a command somebody wants to hold; a terminal has one for input and one for output."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Source(Protocol):
    """What a command writes."""

    async def read(self) -> bytes:
        """Waits; empty at the end."""


class Sink(Protocol):
    """What a command reads."""

    async def write(self, data: bytes) -> None:
        """Waits while the command does not read. Raises BrokenPipeError when nobody ever will."""

    def close(self) -> None:
        """Nothing more comes."""


class CommandPort(Protocol):
    """A running command whose ends somebody far away holds."""

    @property
    def stdin(self) -> Sink | None: ...

    @property
    def stdout(self) -> Source | None: ...

    @property
    def stderr(self) -> Source | None: ...

    async def wait(self) -> int:
        """The exit code; the sources then end with what was written. Raises KernelFault where it never began."""

    def resize(self, width: int, height: int) -> None:
        """The size of its terminal in characters; nothing without one."""

    def leave(self) -> None:
        """Nobody holds its ends any more."""


class ContainerPort(Protocol):
    """One running container."""

    @property
    def container_id(self) -> str: ...

    async def wait(self) -> Exit:
        """Returns when the main process has ended and nothing of the container is left."""

    async def execute(self, command: list[str], timeout_seconds: float) -> Execution:
        """Run a command inside the container. Raises KernelFault when it cannot be run at all."""

    async def open(self, command: list[str], ends: Ends) -> CommandPort:
        """A command inside the container that somebody talks with. Raises KernelFault when it cannot be run at all."""

    def attach(self, ends: Ends) -> CommandPort:
        """The main process itself, from now on."""

    def terminate(self) -> bool:
        """SIGTERM to the main process; False where it does not heed that, as process 1 without a handler does not."""

    def kill(self) -> None:
        """SIGKILL to everything inside."""


class RuntimePort(Protocol):
    """Runs containers. Methods raise KernelFault when the machine refuses."""

    def adapted(self, pod: PodObject) -> PodObject:
        """The pod as it runs here; to be asked at its beginning and at each change, and never after `remove_pod`."""

    def write_files(self, pod: PodObject, sources: Sources) -> None:
        """The files of its volumes again, while it runs. Raises VolumeNotReady."""

    def make_pod(self, pod: PodObject, sources: Sources) -> None:
        """Cgroup, private directory and volumes of a pod. Raises VolumeNotReady too."""

    def start(
        self, pod: PodObject, container: PodContainer, restart_count: int, sources: Sources
    ) -> ContainerPort | Refused | Missing:
        """Start one container."""

    def bound_pod(self, pod: PodObject, held: PodObject) -> None:
        """The pod's own cgroup, wide enough for either of these."""

    def resize(self, pod: PodObject, container: PodContainer, container_id: str) -> None:
        """A running container's amounts. Raises KernelFault where it holds more memory than its new limit, too."""

    async def remove_pod(self, pod: PodObject) -> None:
        """Kill whatever is left and remove all but the logs."""

    def remove_logs(self, pod: PodObject) -> None:
        """The object is gone: so are its logs."""

    def keep_only(self, uids: set[str]) -> None:
        """Forget what an earlier run of the node left of other pods."""

    def log_file(self, pod: PodObject, container: str, restart_count: int) -> Path:
        """Where one run's output is."""

    def container_ended(self, pod: PodObject, container: str, restart_count: int) -> None:
        """That run is over: nothing more comes to its log."""

    def termination_message(self, pod: PodObject, container: str, restart_count: int) -> str:
        """What that run wrote to its terminationMessagePath."""

    def listeners(self, pod: PodObject, port: int) -> list[str]:
        """Addresses at which a process of the pod listens on a TCP port."""

    def set_burstable(self, cpu_millis: int) -> None:
        """The CPU requests of all Burstable pods together."""


class Services(msgspec.Struct, frozen=True):
    """What every pod's worker shares. `volume_seconds` lie between two looks at what its volumes are made of."""

    api: ApiPort
    runtime: RuntimePort
    now: Callable[[], datetime]
    backoff_base_seconds: float = 10.0
    volume_seconds: float = 10.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
