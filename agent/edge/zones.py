"""Writing the node's NodeResourceTopology: its CPUs and pools, its NUMA zones, and what the tick offers of each."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from agent.core.lend.offer import amounts_of, due
from agent.core.observe.observation import Missing
from agent.core.observe.topology import share_pools
from agent.ports import TickResult
from kube.client import KubeClient, PatchKind, decode, path_of
from kube.dialects.koordinator import topology
from kube.dialects.koordinator.topology import NodeResourceTopology
from model.fault import ConfigurationFault, KubernetesFault
from model.node import Node
from model.pod.pod import Pod
from model.resources import ResourceVector
from model.topology import CpuInfo, KubeletCpus, NodeTopology

log = structlog.get_logger()

_RESOURCE = f"{topology.API_VERSION}/noderesourcetopologies"
_FIRST_DELAY_SECONDS = 1.0
_LONGEST_DELAY_SECONDS = 60.0
_WITHOUT_DEFINITION_SECONDS = 300.0


class ZonePublisher:
    """A sink of the tick; `run` writes when a zone's amounts move as the node's would, and every `seconds` otherwise.

    `info` gives the machine's CPUs, `kubelet` what its CPU manager gave to the pods. `on_node` is what the zones say,
    as read where a tick has to know and as written since; None before that. A reset writes zeroes, as Koordinator does.
    """

    def __init__(
        self,
        client: KubeClient,
        node_name: str,
        seconds: float,
        info: Callable[[], CpuInfo | None],
        kubelet: Callable[[Iterable[Pod]], KubeletCpus | Missing],
    ) -> None:
        self._client = client
        self._path = path_of(_RESOURCE, name=node_name)
        self._seconds = seconds
        self._info = info
        self._kubelet = kubelet
        self._newest: TickResult | None = None
        self.on_node: Mapping[int, ResourceVector] | None = None
        self._fresh = asyncio.Event()
        self._amounts: Mapping[str, int] = {}
        self.written_at = -math.inf
        self.failures = 0

    def take(self, result: TickResult) -> None:
        self._newest = result
        self._fresh.set()

    async def run(self) -> None:
        """Never returns."""
        delay = _FIRST_DELAY_SECONDS
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            try:
                await self._publish_if_due()
                delay = _FIRST_DELAY_SECONDS
            except ConfigurationFault as fault:
                self.failures += 1
                log.error("topology not published", error=str(fault))
                await asyncio.sleep(self._seconds)
            except KubernetesFault as fault:
                self.failures += 1
                delay = _WITHOUT_DEFINITION_SECONDS if fault.status == 404 else min(delay * 2, _LONGEST_DELAY_SECONDS)
                log.warning("topology not published", error=str(fault), retry_seconds=delay)
                await asyncio.sleep(delay)

    async def _publish_if_due(self) -> None:
        result, info = self._newest, self._info()
        if result is None or result.facts.node is None or info is None:
            return
        now = result.observation.monotonic_seconds
        if not result.offered.may_publish:
            return
        if result.offered.zones is None:
            # The next tick decides by it.
            self.on_node = _on_node(await self._read())
            return
        lent = {zone: ResourceVector(amounts_of(told)) for zone, told in result.offered.zones.items()}
        amounts = {f"{zone}/{name}": vector[name] for zone, vector in lent.items() for name in vector}
        elapsed = now - self.written_at
        if elapsed < self._seconds and not due(self._amounts, amounts, elapsed, result.facts.settings.colocation):
            return
        # It reads a disk, and one that does not answer holds no tick up.
        kubelet = await asyncio.to_thread(self._kubelet, result.facts.pods or ())
        told = self._topology(result, result.facts.node, info, kubelet)
        await self._write(topology.document(result.facts.node, told, lent))
        self._amounts, self.written_at, self.on_node = amounts, now, lent

    def _topology(self, result: TickResult, node: Node, info: CpuInfo, kubelet: KubeletCpus | Missing) -> NodeTopology:
        """Raises ConfigurationFault naming the annotation or the pod whose CPUs cannot be read."""
        pods = result.facts.pods or ()
        known = None if isinstance(kubelet, Missing) else kubelet
        try:
            pools = share_pools(info, pods, known, topology.unusable_cpus(node, info.processors))
        except ValueError as error:
            raise ConfigurationFault(str(error), "is no CPU list", "mend the pod's resource-status") from error
        return NodeTopology(info, result.facts.zones, pools, known)

    async def _write(self, wanted: dict[str, Any]) -> None:
        current = await self._read()
        if current is None:
            await self._client.create(path_of(_RESOURCE), wanted)
        elif patch := topology.changes(current, wanted):
            await self._client.patch(self._path, patch, PatchKind.MERGE)

    async def _read(self) -> NodeResourceTopology | None:
        """None where there is none yet."""
        try:
            return decode(await self._client.request("GET", self._path), NodeResourceTopology, self._path)
        except KubernetesFault as fault:
            if fault.status != 404:
                raise
            return None


def _on_node(current: NodeResourceTopology | None) -> dict[int, ResourceVector]:
    """What the zones say already; of an unreadable one nothing stands."""
    try:
        return {zone.id: zone.allocatable for zone in topology.zones(current)} if current else {}
    except ConfigurationFault:
        return {}
