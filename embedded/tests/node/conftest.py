"""Builders, fakes of the room's two ports, and throw-away cgroup prefixes."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import struct
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from embedded.fault import KernelFault, KubernetesFault
from embedded.node.images.commands import Missing, Refused
from embedded.node.objects.pod import NodeObject, PodContainer, PodObject
from embedded.node.objects.sources import SourceRef, Sources, TokenRef, VolumeNotReady
from embedded.node.objects.tokens import Token
from embedded.node.ports import Execution, Exit, Services
from embedded.tests.cgroups.conftest import cgroups

__all__ = ["cgroups"]
Build = Callable[..., PodObject]
ADDRESS = "127.65.0.9"


def build_pod(
    *, containers: list[dict[str, Any]] | None = None, status: dict[str, Any] | None = None, **spec: Any
) -> PodObject:
    """A valid pod with one busybox container; `metadata` and any spec field may be given."""
    metadata = {"name": "web", "namespace": "shop", "uid": "u-1", **spec.pop("metadata", {})}
    defaults = [{"name": "main", "image": "busybox", "command": ["sleep", "1000"]}]
    body = [{**defaults[0], **each} for each in containers] if containers else defaults
    spec = {"nodeName": "n1", "restartPolicy": "Always", **spec}
    return msgspec.convert(
        {"metadata": metadata, "spec": {**spec, "containers": body}, "status": status or {}}, PodObject
    )


@pytest.fixture
def pod() -> Build:
    return build_pod


class FakeApi:
    """Keeps what it was told; `away` makes every call fail as an unreachable server does."""

    def __init__(self) -> None:
        self.statuses: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.events: list[tuple[str, str]] = []
        self.away = False
        self.refusal = 0
        self.refused = 0
        self.sources: dict[SourceRef, dict[str, bytes]] = {}
        self.hold: asyncio.Event | None = None
        self.tokens_asked: list[TokenRef] = []
        self.token_now: Callable[[], datetime] = lambda: datetime(2030, 1, 1, tzinfo=UTC)
        self.allocatable: dict[str, str] = {"cpu": "2", "memory": "4Gi", "pods": "110"}

    async def patch_pod_status(self, pod: PodObject, status: dict[str, Any]) -> None:
        self._answer()
        if self.hold:
            await self.hold.wait()
        self.statuses.append(status)

    async def delete_pod(self, pod: PodObject) -> None:
        self._answer()
        self.deleted.append(pod.uid)

    async def read_source(self, namespace: str, ref: SourceRef) -> Mapping[str, bytes] | None:
        self._answer()
        return self.sources.get(ref)

    async def read_node(self) -> NodeObject:
        self._answer()
        return msgspec.convert({"status": {"allocatable": self.allocatable}}, NodeObject)

    async def request_token(self, pod: PodObject, ref: TokenRef) -> Token:
        self._answer()
        self.tokens_asked.append(ref)
        now = self.token_now()
        text = f"{ref.audience or 'api'}-{len(self.tokens_asked)}"
        return Token(text, now, now + timedelta(seconds=ref.expiration_seconds))

    def record(self, pod: PodObject, reason: str, message: str, *, warning: bool = False) -> None:
        self.events.append((reason, message))

    def _answer(self) -> None:
        if self.away or self.refusal:
            self.refused += 1
            raise KubernetesFault("fake", "away", status=self.refusal)

    @property
    def phases(self) -> list[str]:
        """Phases as reported, repetitions left out."""
        return [phase for phase, _ in itertools.groupby(status["phase"] for status in self.statuses)]


class FakeContainer:
    """Runs until told to end; SIGTERM ends it with 143 unless it is stubborn, and is not heeded where it is deaf."""

    deaf = False

    def __init__(self, name: str, restart_count: int, stubborn: bool) -> None:
        self.container_id = f"{name}-{restart_count}"
        self.signals: list[str] = []
        self._stubborn = stubborn
        self._ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self.executed: list[list[str]] = []
        self.answers: dict[str, Execution] = {}

    async def wait(self) -> Exit:
        return await self._ended

    async def execute(self, command: list[str], timeout_seconds: float) -> Execution:
        """As `answers` says by the first word; without an answer it succeeds."""
        self.executed.append(command)
        return self.answers.get(command[0], Execution(0))

    def terminate(self) -> bool:
        self.signals.append("TERM")
        if not self._stubborn and not self.deaf:
            self.end(143)
        return not self.deaf

    def kill(self) -> None:
        self.signals.append("KILL")
        self.end(137)

    def end(self, code: int, *, oom_killed: bool = False) -> None:
        if not self._ended.done():
            self._ended.set_result(Exit(code, oom_killed))


def _cpus(containers: list[PodContainer]) -> list[str]:
    return [str(((each.resources and each.resources.requests) or {}).get("cpu", "")) for each in containers]


class FakeRuntime:
    """Containers that exist only here; `refusals` answers a start by container name."""

    def __init__(self, directory: Path) -> None:
        self.started: list[FakeContainer] = []
        self.removed: list[str] = []
        self.refusals: dict[str, Refused | Missing] = {}
        self.stubborn = False
        self.answers: dict[str, Execution] = {}
        self.messages: dict[str, str] = {}
        self.logs_closed: list[str] = []
        self.lacking_volume: tuple[str, str] | None = None
        self.burstable_millis: list[int] = []
        self._directory = directory
        self.written: list[Sources] = []
        self.sizes: list[tuple[Any, ...]] = []
        self.resize_fault = ""

    def adapted(self, pod: PodObject) -> PodObject:
        return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, pod_ip=ADDRESS))

    def write_files(self, pod: PodObject, sources: Sources) -> None:
        if self.lacking_volume:
            raise VolumeNotReady(*self.lacking_volume)
        self.written.append(sources)

    def make_pod(self, pod: PodObject, sources: Sources) -> None:
        if self.lacking_volume:
            raise VolumeNotReady(*self.lacking_volume)

    def start(
        self, pod: PodObject, container: PodContainer, restart_count: int, sources: Sources
    ) -> FakeContainer | Refused | Missing:
        if container.name in self.refusals:
            return self.refusals[container.name]
        self.started.append(FakeContainer(container.name, restart_count, self.stubborn))
        self.started[-1].answers = self.answers
        return self.started[-1]

    def bound_pod(self, pod: PodObject, held: PodObject) -> None:
        self.sizes.append(("pod", _cpus(held.spec.containers), _cpus(pod.spec.containers)))

    def resize(self, pod: PodObject, container: PodContainer, container_id: str) -> None:
        if self.resize_fault:
            raise KernelFault("memory.max", self.resize_fault)
        self.sizes.append((container_id, *_cpus([container])))

    def container_ended(self, pod: PodObject, container: str, restart_count: int) -> None:
        self.logs_closed.append(container)

    def termination_message(self, pod: PodObject, container: str, restart_count: int) -> str:
        return self.messages.get(container, "")

    async def remove_pod(self, pod: PodObject) -> None:
        self.removed.append(pod.uid)

    def remove_logs(self, pod: PodObject) -> None:
        return None

    def keep_only(self, uids: set[str]) -> None:
        return None

    def log_file(self, pod: PodObject, container: str, restart_count: int) -> Path:
        return self._directory / f"{container}-{restart_count}.log"

    def set_burstable(self, cpu_millis: int) -> None:
        self.burstable_millis.append(cpu_millis)


class Clock:
    """A clock that a test moves; starts in 2030."""

    def __init__(self) -> None:
        self.time = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def runtime(tmp_path: Path) -> FakeRuntime:
    return FakeRuntime(tmp_path)


@pytest.fixture
def services(api: FakeApi, runtime: FakeRuntime, clock: Clock) -> Services:
    return Services(api, runtime, clock, backoff_base_seconds=0.02)


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Await a condition; the deadline is far beyond anything a slow machine needs."""

    async def wait(holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < deadline, "the condition never came true"
            await asyncio.sleep(0.005)

    return wait


_PT_INTERP = 3
_PROGRAMS = (
    "sh",
    "cat",
    "echo",
    "grep",
    "head",
    "hostname",
    "httpd",
    "id",
    "ls",
    "pwd",
    "sleep",
    "stat",
    "touch",
    "wc",
)
_CONFIG = {"Entrypoint": ["sh", "-c"], "Cmd": ["echo by default"], "Env": ["FROM=image"], "WorkingDir": "/work"}


def static_busybox() -> Path:
    """One that needs nothing else: none of its program headers names an interpreter (elf(5))."""
    found = shutil.which("busybox")
    program = Path(found).read_bytes() if found else b""
    start, size, count = struct.unpack_from("<Q14xHH", program, 32) if program else (0, 0, 0)
    kinds = {struct.unpack_from("<I", program, start + number * size)[0] for number in range(count)}
    if not kinds or _PT_INTERP in kinds:
        pytest.skip("no static busybox; install busybox-static")
    return Path(found or "")


@pytest.fixture(scope="session")
def image_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image store with `tiny:1`: it has a user of its own, and /bin is a link, as Debian has it."""
    directory = tmp_path_factory.mktemp("store")
    root = directory / "tiny" / "1" / "rootfs"
    for name in ("usr/bin", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy(static_busybox(), root / "usr/bin/busybox")
    for name in _PROGRAMS:
        (root / "usr/bin" / name).symlink_to("/usr/bin/busybox")
    (root / "bin").symlink_to("usr/bin")
    (root / "run").symlink_to("/nowhere/yet")
    (root / "etc/passwd").write_text("app:x:1000:1001:app:/home/app:/bin/sh\n")
    (directory / "tiny" / "1" / "config.json").write_text(json.dumps(_CONFIG))
    return directory
