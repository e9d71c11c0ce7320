"""The admission program put together: the only place that constructs its edges."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import structlog

from admission.edge.certificates import CertificateKeeper
from admission.edge.cluster import ClusterView
from admission.edge.memoryfiles import MemoryFiles
from admission.edge.metrics import AdmissionMetrics
from admission.edge.server import ReviewServer
from admission.edge.servingpair import ServingPair
from admission.evictions import EvictionReviewer
from admission.leading import lead
from admission.review_handler import ReviewHandler
from admission.reviewer import Reviewer
from admission.settings import AdmissionSettings
from kube.client import KubeClient
from kube.leadership import Leadership
from kube.lease import LeaseSettings
from kube.monitoring import AccessGuard, MonitoringServer, Probes
from kube.reviews import Reviews
from kube.tls import ServerCertificate, TlsFiles
from kube.wholefile import write_whole
from kube.x509 import described_certificate
from model.fault import ConfigurationFault

log = structlog.get_logger()

SERVICES = ("sublet-admission", "sublet-agent", "sublet-scheduler")
"""Whose certificates are made: SERVICE-tls each."""
_OWN_SECRET = "sublet-admission-tls"
_AGENTS = "sublet-agent"
"""The account of all agents."""
_STUCK_SECONDS = 60.0
_BEAT_SECONDS = 1.0
_SYNC_CHECK_SECONDS = 0.05


class AdmissionOptions(msgspec.Struct, frozen=True):
    """What a command line says; addresses are HOST:PORT, port 0 takes a free one.

    `tls` are files that somebody else keeps fresh; without them the leader makes all certificates.
    """

    kubeconfig: Path | None
    identity: str
    tls: TlsFiles | None = None
    namespace: str = "sublet-system"
    settings: AdmissionSettings = AdmissionSettings()
    listen: str = "0.0.0.0:10321"
    http_listen: str = "127.0.0.1:10322"
    ready_file: Path | None = None


class AdmissionAddresses(msgspec.Struct, frozen=True):
    """The ready file: where the servers really listen."""

    reviews: str
    http: str


class _State:
    """How far the process has come; probes look at it from other threads."""

    def __init__(self, view: ClusterView) -> None:
        self.serving: ServerCertificate | None = None
        self._view = view
        self._beat = time.monotonic()

    async def beat(self) -> None:
        """For ever: a loop that is stuck is seen from outside."""
        while True:
            self._beat = time.monotonic()
            await asyncio.sleep(_BEAT_SECONDS)

    def alive(self) -> str:
        silent = time.monotonic() - self._beat
        return f"the event loop has not turned for {silent:.0f} s" if silent > _STUCK_SECONDS else ""

    def not_ready(self) -> str:
        if not self._view.synced:
            return "the cluster is not known yet"
        return "" if self.expires_in_seconds() > 0 else "the certificate has expired, or there is none"

    def expires_in_seconds(self) -> float:
        """Of the certificate that is served; 0 before there is one."""
        if self.serving is None:
            return 0.0
        return described_certificate(self.serving.newest().certificate).not_after - time.time()


async def run(options: AdmissionOptions, stop: asyncio.Event) -> int:
    """Serve until told to stop: 0. Raises ConfigurationFault for what only the operator can mend."""
    if options.ready_file is not None:
        if not options.ready_file.parent.is_dir():
            raise ConfigurationFault(f"--ready-file {options.ready_file}", "its folder does not exist", "make it first")
        options.ready_file.unlink(missing_ok=True)
    if options.tls is not None:
        # What would end the start later ends it at once.
        ServerCertificate(options.tls)
    async with await KubeClient.connect(options.kubeconfig, "sublet-admission") as client:
        return await _Program(client, options).run(stop)


class _Program:
    """All parts, and how they follow each other."""

    def __init__(self, client: KubeClient, options: AdmissionOptions) -> None:
        self._client = client
        self._options = options
        self._metrics = AdmissionMetrics()
        self._view = ClusterView(client)
        self._state = _State(self._view)
        settings = options.settings
        reviewer = Reviewer(self._view, settings.mutation, settings.pods)
        agents = f"system:serviceaccount:{options.namespace}:{_AGENTS}"
        evictions = EvictionReviewer(agents, self._view.find_pod)
        view = self._view
        self._handler = ReviewHandler(reviewer, evictions, view.look_for, view.look_for_parent, self._metrics)
        self._keeper = CertificateKeeper(client, options.namespace, SERVICES, settings.certificates)
        self._leadership: Leadership | None = None

    async def run(self, stop: asyncio.Event) -> int:
        self._metrics.watch(
            {
                "certificate_expires_in_seconds": self._state.expires_in_seconds,
                "authority_expires_in_seconds": self._authority_expires_in_seconds,
                "leader": lambda: float(self._leading),
                "cluster_silent_seconds": lambda: self._view.silent_seconds,
            }
        )
        work = [*self._view.work(), self._state.beat()]
        if self._options.tls is None:
            pause = self._options.settings.certificates.check_seconds
            work.append(lead(self._campaign, lambda now: self._keeper.turn(now, self._metrics), pause))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
            await _until(stop, self._serve())
            for task in tasks:
                task.cancel()
        return 0

    async def _serve(self) -> None:
        """Once there is a certificate; for ever then."""
        async with self._files() as files:
            self._state.serving = certificate = ServerCertificate(files)
            async with (
                self._monitoring(certificate) as http,
                ReviewServer(
                    self._options.listen, certificate, self._handler.handle, self._options.settings.limits
                ) as server,
            ):
                while not self._view.synced:
                    await asyncio.sleep(_SYNC_CHECK_SECONDS)
                _write_ready(self._options.ready_file, AdmissionAddresses(server.address, http))
                log.info("reviewing", reviews=server.address, http=http, identity=self._options.identity)
                await server.listener.serving()

    @contextlib.asynccontextmanager
    async def _files(self) -> AsyncIterator[TlsFiles]:
        """The operator's files, or ones that follow the Secret that the leader keeps."""
        options = self._options
        if options.tls is not None:
            yield options.tls
            return
        source = ServingPair(self._client, options.namespace, _OWN_SECRET, options.settings.certificates.check_seconds)
        memory = MemoryFiles(await source.first())
        following = asyncio.create_task(_follow(source, memory))
        try:
            yield memory.files
        finally:
            following.cancel()
            memory.close()

    @contextlib.asynccontextmanager
    async def _monitoring(self, certificate: ServerCertificate) -> AsyncIterator[str]:
        """Probes and metrics; yields the real address."""
        probes, guard = (
            Probes(self._state.alive, self._state.not_ready),
            AccessGuard(certificate, Reviews(self._client)),
        )
        server = MonitoringServer(self._options.http_listen, self._metrics.registry, probes, guard)
        server.start()
        try:
            yield server.address
        finally:
            server.close()

    def _authority_expires_in_seconds(self) -> float:
        return max(0.0, self._keeper.authority_expires_seconds - time.time()) if self._leading else 0.0

    @property
    def _leading(self) -> bool:
        return self._leadership is not None and self._leadership.leading()

    def _campaign(self) -> Leadership:
        """One more leadership to wait for, on a thread and a connection that no review holds up."""
        options = self._options
        lease = LeaseSettings(namespace=options.namespace, name="sublet-admission")
        self._leadership = Leadership(options.kubeconfig, lease, options.identity, user_agent="sublet-admission-lease")
        return self._leadership


async def _follow(source: ServingPair, memory: MemoryFiles) -> None:
    while True:
        memory.replace(await source.newer())


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """`work` until told to stop, or until it fails."""
    task, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        stopping.cancel()
        task.cancel()
        await asyncio.wait([task])


def _write_ready(path: Path | None, listening: AdmissionAddresses) -> None:
    """Write the ready file in one step."""
    if path is not None:
        write_whole(path, msgspec.json.encode(listening), path.with_name(path.name + ".draft"))
