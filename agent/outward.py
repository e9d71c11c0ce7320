"""The wiring of what others reach the agent by, and it them: diagnostics, checkpoints, /metrics, probes, the link.

It loads gRPC and Prometheus' client, which costs as much as the rest of the agent: it is imported after the first tick.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import structlog

from agent.edge.diagnostics import DiagnosticsServers
from agent.edge.link import Access, LinkClient
from agent.edge.metrics import registry
from agent.options import AgentOptions
from agent.sources import Inside
from agent.version import VERSION
from kube.client import KubeClient
from kube.monitoring import Guard, MonitoringServer, Probes
from kube.reviews import Reviews
from kube.tls import ServerCertificate, TlsFiles
from model.report import AgentHello, PreemptionNotice

log = structlog.get_logger()


class Outward:
    """Made on the event loop that serves it; `link` is None for an observer, and where no scheduler is named.

    Raises ConfigurationFault for an address or a certificate that cannot be used.
    """

    def __init__(self, options: AgentOptions, client: KubeClient, inside: Inside, *, observing: bool) -> None:
        self._servers = DiagnosticsServers(inside.sources, options.grpc_listen, options.socket)
        self._http = MonitoringServer(
            options.http_listen,
            registry(inside.series),
            Probes(inside.not_alive, inside.not_ready),
            _guard(options, client),
        )
        self._http.start()
        self.link = None if observing else self._link(options)
        if self.link is None:
            log.info("no scheduler is linked", effect="eviction costs are neutral")

    async def start(self) -> Mapping[str, str]:
        """Serve; returns the addresses in use. Raises ConfigurationFault."""
        return {"grpc": await self._servers.start(), "http": self._http.address}

    async def stop(self) -> None:
        await self._servers.stop()
        self._http.close()

    def notify(self, notice: PreemptionNotice) -> None:
        self._servers.checkpoints.notify(notice)

    def _link(self, options: AgentOptions) -> LinkClient | None:
        if not (options.scheduler and options.scheduler_ca and options.token_file):
            return None
        hello = AgentHello(options.node_name, VERSION, secrets.token_hex(8))
        access = Access(options.scheduler, options.scheduler_ca, options.token_file)
        return LinkClient(access, hello, self.notify, self._servers.checkpoints.spare)


def _guard(options: AgentOptions, client: KubeClient) -> Guard | None:
    if options.tls_cert is None or options.tls_key is None:
        return None
    return Guard(ServerCertificate(TlsFiles(options.tls_cert, options.tls_key)), Reviews(client))
