"""Builds the proxy from its parts and runs it."""

from __future__ import annotations

import asyncio
import contextlib
import signal

import structlog

from embedded.proxy.health import serve_health
from embedded.proxy.listeners import Listeners
from embedded.proxy.objects import EndpointSliceObject, ServiceObject
from embedded.proxy.routes import routes
from embedded.proxy.settings import ProxyAccess, ProxySettings
from embedded.ready_file import write_ready_file
from kube.client import KubeClient
from kube.informer import Change, Informer

log = structlog.get_logger()

_GATHER_SECONDS = 0.02
"""Changes that come together are worked off together."""


async def serve(settings: ProxySettings, access: ProxyAccess) -> None:
    """Run until SIGTERM or SIGINT. Raises Fault when it cannot start."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with await KubeClient.connect(access.kubeconfig, "sublet-proxy") as client:
        proxy = Proxy(client, settings)
        running = asyncio.create_task(proxy.run(access))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            for task in (running, stopping):
                task.cancel()
            await asyncio.gather(running, stopping, return_exceptions=True)
            await proxy.fronts.close()


class Proxy:
    """Watches Services and EndpointSlices, and keeps the fronts in line with them."""

    def __init__(self, client: KubeClient, settings: ProxySettings) -> None:
        self.fronts = Listeners(settings)
        self._settings = settings
        self._changed = asyncio.Event()
        self._services = Informer(client, "v1/services", ServiceObject, on_change=self._on_service)
        slices = "discovery.k8s.io/v1/endpointslices"
        self._slices = Informer(client, slices, EndpointSliceObject, on_change=self._on_slice)

    def _on_service(self, _: Change[ServiceObject]) -> None:
        self._changed.set()

    def _on_slice(self, _: Change[EndpointSliceObject]) -> None:
        self._changed.set()

    async def run(self, access: ProxyAccess) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as tasks:
            for informer in (self._services, self._slices):
                tasks.create_task(informer.run())
                await informer.synced.wait()
            complete = await self._apply()
            if access.ready_file is not None:
                facts = {"services": len(self.fronts.places), "http": await serve_health()}
                write_ready_file(access.ready_file, facts)
            while True:
                await self._wait(None if complete else self._settings.retry_seconds)
                complete = await self._apply()

    async def _wait(self, seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        await asyncio.sleep(_GATHER_SECONDS)

    async def _apply(self) -> bool:
        self._changed.clear()
        services, slices = self._services.items.values(), self._slices.items.values()
        return await self.fronts.apply(routes(services, slices, routed=self._settings.routed))
