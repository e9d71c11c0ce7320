"""Builds simulated nodes from their parts and runs them."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
from pathlib import Path

import structlog

from embedded.node.logs.server import read_token, tls_context
from embedded.node.objects.pod import NodeObject, PodObject
from embedded.ready_file import write_ready_file
from kube.client import KubeClient
from kube.informer import Change, Informer
from local.simnodes.cluster import SimulatedCluster
from local.simnodes.settings import SIMULATED, Access, Simulation
from local.simnodes.statistics import summary
from local.simnodes.statserver import StatisticsServer
from local.simnodes.usage import OnlineLoad
from local.simnodes.writer import Writer

log = structlog.get_logger()

_GATHER_SECONDS = 0.02
"""Changes that come together are worked off together."""
_LONGEST_REST_SECONDS = 1.0


async def serve(simulation: Simulation, load: OnlineLoad, access: Access) -> None:
    """Run until SIGTERM or SIGINT. The nodes stay in the API. Raises Fault when it cannot start."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with await KubeClient.connect(access.kubeconfig, "sublet-simnodes") as client:
        running = asyncio.create_task(_Simulation(simulation, load, client).run(access))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            for task in (running, stopping):
                task.cancel()
            await asyncio.gather(running, stopping, return_exceptions=True)


class _Simulation:
    """The parts of a running simulation."""

    def __init__(self, simulation: Simulation, load: OnlineLoad, client: KubeClient) -> None:
        self._simulation = simulation
        self._load = load
        self._client = client
        self._changed = asyncio.Event()
        self._writer = Writer(client)

    async def run(self, access: Access) -> None:
        """Never returns."""
        server, port = await self._serve_statistics(access)
        self._cluster = SimulatedCluster(self._simulation, self._load, port)
        nodes, pods = self._node_informer(), self._pod_informer()
        try:
            async with asyncio.TaskGroup() as tasks:
                for loop in (self._writer.run(), nodes.run()):
                    tasks.create_task(loop)
                # What a Node offered already decides about the pods that are bound to it.
                await nodes.synced.wait()
                tasks.create_task(pods.run())
                await pods.synced.wait()
                await self._register(access.ready_file, port)
                await self._live()
        finally:
            if server:
                await server.stop()

    async def _register(self, ready_file: Path | None, port: int) -> None:
        began = time.monotonic()
        self._cluster.begin(time.time())
        self._writer.put(self._cluster.take())
        await self._writer.done()
        seconds = time.monotonic() - began
        log.info("simulated nodes registered", nodes=self._simulation.count, seconds=round(seconds, 1))
        gc.freeze()
        if ready_file:
            told = self._simulation
            facts = {"nodes": told.count, "prefix": told.prefix, "seconds": seconds, "port": port}
            write_ready_file(ready_file, facts)

    async def _live(self) -> None:
        while True:
            self._changed.clear()
            self._cluster.advance(time.time())
            self._writer.put(self._cluster.take())
            await asyncio.sleep(_GATHER_SECONDS)
            await self._rest()

    async def _rest(self) -> None:
        """Until something changes or is due."""
        due = self._cluster.next_at
        seconds = _LONGEST_REST_SECONDS if due is None else min(due - time.time(), _LONGEST_REST_SECONDS)
        if seconds > 0:
            try:
                await asyncio.wait_for(self._changed.wait(), seconds)
            except TimeoutError:
                return

    def _node_informer(self) -> Informer[NodeObject]:
        return Informer(
            self._client,
            "v1/nodes",
            NodeObject,
            label_selector=f"{SIMULATED}=true",
            on_change=lambda change: self._cluster.observe_node(change),
        )

    def _pod_informer(self) -> Informer[PodObject]:
        return Informer(
            self._client, "v1/pods", PodObject, field_selector="spec.nodeName!=", on_change=self._observe_pod
        )

    def _observe_pod(self, change: Change[PodObject]) -> None:
        self._cluster.observe_pod(change, time.time())
        self._changed.set()

    async def _serve_statistics(self, access: Access) -> tuple[StatisticsServer | None, int]:
        if access.tls_cert is None or access.tls_key is None or access.kubelet_token_file is None:
            return None, 0
        context, token = tls_context(access.tls_cert, access.tls_key), read_token(access.kubelet_token_file)
        server = StatisticsServer(lambda name: summary(self._cluster, name, time.time()), token)
        return server, await server.start(context)
