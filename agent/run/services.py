"""The wiring of what others reach the agent by, and it them: diagnostics, /metrics, probes, the link.

It loads gRPC and Prometheus' client, which costs as much as the rest of the agent: it is imported after the first tick.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping

import structlog

from agent.core.evict.pod_notices import NoticeOrigin
from agent.edge.diagnostics import DiagnosticsServers
from agent.edge.link import LinkAccess, LinkClient
from agent.edge.network import users_listening_on
from agent.edge.podsockets import PodSockets
from agent.options import AgentOptions
from agent.report.sources import ServiceSources
from agent.run.listener import PortListener
from agent.version import VERSION
from kube.client import KubeClient
from kube.exposition import registry_of
from kube.monitoring import AccessGuard, MonitoringServer, Probes
from kube.reviews import Reviews
from kube.tls import ServerCertificate, TlsFiles
from model.metrics import AGENT
from model.report import AgentHello

log = structlog.get_logger()


class AgentServices:
    """Made on the event loop that serves it; `link` is None for an observer, and where no scheduler is named.

    Probes and users ask on sockets in a folder that is the agent's own; a port may be another's, and the agent
    works on without it. Raises ConfigurationFault for an address or a certificate that must not be used.
    """

    def __init__(
        self, options: AgentOptions, client: KubeClient, sources: ServiceSources, pods: PodSockets, *, observing: bool
    ) -> None:
        self._servers = DiagnosticsServers(sources.sources, options.grpc_listen, options.socket)
        self._options = options
        self._monitored = registry_of(AGENT, sources.series), Probes(sources.not_alive, sources.not_ready)
        self._guard = _guard(options, client)
        self._http: list[MonitoringServer] = []
        self._listeners = tuple(
            PortListener(name, serve, lambda address=address: _holder(address, options), sources.record)  # type: ignore[misc]
            for name, serve, address in (
                ("http", self._serve_http, options.http_listen),
                ("grpc", self._servers.listen, options.grpc_listen),
            )
        )
        self.link = None if observing else self._link(options, pods)
        if self.link is None:
            log.info("no scheduler is linked", effect="eviction costs are neutral")

    async def start(self) -> None:
        """Serve. Raises ConfigurationFault."""
        await self._servers.start()
        self._monitor(f"unix:{self._options.probe_socket}")
        for listener in self._listeners:
            await listener.attempt()

    async def listen(self) -> None:
        """Returns once every port is listened on."""
        await asyncio.gather(*(listener.run() for listener in self._listeners))

    @property
    def addresses(self) -> Mapping[str, str]:
        """Where the agent is reached at this moment: HOST:PORT and paths of sockets."""
        listening = {listener.name: listener.address for listener in self._listeners if listener.address}
        return {**listening, "socket": str(self._options.socket), "probes": str(self._options.probe_socket)}

    @property
    def listen_failures(self) -> Iterable[tuple[str, int]]:
        return [(listener.name, listener.failures) for listener in self._listeners]

    async def stop(self) -> None:
        await self._servers.stop()
        for server in self._http:
            server.close()

    async def _serve_http(self) -> str:
        return self._monitor(self._options.http_listen)

    def _monitor(self, address: str) -> str:
        server = MonitoringServer(address, *self._monitored, self._guard)
        server.start()
        self._http.append(server)
        return server.address

    def _link(self, options: AgentOptions, pods: PodSockets) -> LinkClient | None:
        if not (options.scheduler and options.scheduler_ca and options.token_file):
            return None
        hello = AgentHello(options.node_name, VERSION, secrets.token_hex(8))
        access = LinkAccess(options.scheduler, options.scheduler_ca, options.token_file)
        return LinkClient(
            access,
            hello,
            lambda notice: pods.notify(NoticeOrigin.SCHEDULER, notice),
            lambda uid: pods.withdraw(NoticeOrigin.SCHEDULER, uid),
        )


async def _holder(address: str, options: AgentOptions) -> str:
    """The listener on the port, to be put behind a sentence; empty where that cannot be told."""
    port = address.rpartition(":")[2]
    users = await asyncio.to_thread(users_listening_on, int(port), options.proc) if port.isdecimal() else ()
    if not users:
        return ""
    named = " and ".join(f"user {user}" for user in users)
    return f"; a process of {named} listens there (`ss -ltnp sport = :{port}` as root names it)"


def _guard(options: AgentOptions, client: KubeClient) -> AccessGuard | None:
    if options.tls_cert is None or options.tls_key is None:
        return None
    return AccessGuard(ServerCertificate(TlsFiles(options.tls_cert, options.tls_key)), Reviews(client))
