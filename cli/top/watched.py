"""Facts of `sublet top`: the cluster's objects, kept up to date by watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from cli.diagnostics import AgentDiagnosticsClient
from kube import objects
from kube.client import KubeClient, path_of
from kube.dialects.koordinator import nodemetric
from kube.dialects.upstream import core_objects
from kube.informer import Change, ChangeKind, Informer
from model.fault import ConfigurationFault, KubernetesFault, PeerFault
from model.nodemetric import NodeMetric
from model.pod.pod import Pod
from model.report import Usage
from model.resources import CPU, MEMORY, parse_resources
from view.top import ConditionState, Facts, NodeState

SYNC_SECONDS = 60.0
_AGENT_SECONDS = 1.0
_NODE_METRICS = "slo.koordinator.sh/v1alpha1/nodemetrics"
_MEASURED = "metrics.k8s.io/v1beta1/nodes"
_PODS = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


class Source(msgspec.Struct, frozen=True):
    """Which cluster, which nodes of it, and the agents that can be asked, by node."""

    kubeconfig: Path
    selector: str = ""
    agents: Mapping[str, str] = {}


class _NodeUse(msgspec.Struct, frozen=True):
    metadata: objects.Metadata = objects.Metadata()
    usage: objects.Quantities = {}


class _NodeUses(msgspec.Struct, frozen=True):
    items: list[_NodeUse] = []


class WatchedFacts:
    """`facts` gives what is known at the moment."""

    def __init__(self, client: KubeClient, source: Source) -> None:
        self._client = client
        self._agents = {
            node: AgentDiagnosticsClient(address, _AGENT_SECONDS) for node, address in source.agents.items()
        }
        self._pods: dict[str, Pod] = {}
        self._metrics: dict[str, NodeMetric] = {}
        self._nodes = Informer(client, "v1/nodes", objects.Node, label_selector=source.selector)
        self.informers: tuple[Informer[Any], ...] = (
            self._nodes,
            Informer(client, "v1/pods", objects.Pod, field_selector=_PODS, on_change=self._pod_changed),
            Informer(client, _NODE_METRICS, objects.NodeMetric, on_change=self._metric_changed),
        )

    async def facts(self) -> Facts:
        """Raises KubernetesFault."""
        nodes, metrics = self._nodes.items, self._metrics
        unmeasured = any(name not in metrics for name in nodes)
        used = await self._measured() if unmeasured else {}
        states = {name: _state(node) for name, node in nodes.items()}
        limits = await asyncio.gather(*(self._limit(node) for node in self._agents if node in nodes))
        return Facts(states, list(self._pods.values()), metrics, used, dict(pair for pair in limits if pair))

    async def _measured(self) -> dict[str, Usage]:
        """What metrics.k8s.io says of nodes; nothing where that is not served."""
        try:
            found = await self._client.get(path_of(_MEASURED), _NodeUses)
        except KubernetesFault as fault:
            if fault.status in (403, 404, 503):
                return {}
            raise
        amounts = {each.metadata.name: parse_resources(each.usage, "NodeMetrics") for each in found.items}
        return {name: Usage(amount[CPU], amount[MEMORY]) for name, amount in amounts.items()}

    async def _limit(self, node: str) -> tuple[str, int] | None:
        try:
            limit = (await asyncio.to_thread(self._agents[node].node)).best_effort_limit_millis
        except PeerFault:
            return None
        return None if limit is None else (node, limit)

    def _pod_changed(self, change: Change[objects.Pod]) -> None:
        uid = change.object.metadata.uid
        self._pods.pop(uid, None)
        if change.kind is not ChangeKind.DELETED:
            try:
                self._pods[uid] = core_objects.pod(change.object)
            except ConfigurationFault:
                return  # what it requests cannot be told, so it is in no sum

    def _metric_changed(self, change: Change[objects.NodeMetric]) -> None:
        name = change.object.metadata.name
        self._metrics.pop(name, None)
        if change.kind is not ChangeKind.DELETED:
            try:
                self._metrics[name] = nodemetric.node_metric(change.object)
            except ConfigurationFault:
                return  # as good as none


def _state(node: objects.Node) -> NodeState:
    """Raises ConfigurationFault naming the node and the amount that cannot be read."""
    where = f"Node {node.metadata.name}: status.allocatable"
    conditions = {one.type: ConditionState(one.status, one.reason) for one in node.status.conditions or ()}
    return NodeState(parse_resources(node.status.allocatable or {}, where), conditions, node.spec.unschedulable)


@asynccontextmanager
async def watched(source: Source) -> AsyncIterator[WatchedFacts]:
    """Ready once everything was listed. Raises Fault where the cluster does not answer or refuses."""
    async with await KubeClient.connect(source.kubeconfig, "sublet-top") as client:
        # A watch waits for a server that is away; a person wants to know.
        query = {"labelSelector": source.selector} if source.selector else {}
        for resource in ("v1/nodes", "v1/pods"):
            await client.get(path_of(resource), dict, limit=1, **(query if resource == "v1/nodes" else {}))
        found = WatchedFacts(client, source)
        tasks = [asyncio.create_task(informer.run()) for informer in found.informers]
        try:
            await _synced(found, client.host)
            yield found
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _synced(found: WatchedFacts, host: str) -> None:
    try:
        async with asyncio.timeout(SYNC_SECONDS):
            for informer in found.informers:
                await informer.synced.wait()
    except TimeoutError as error:
        what = f"nodes, pods and NodeMetrics were not listed within {SYNC_SECONDS:.0f} s"
        raise KubernetesFault(host, what, "is this user allowed to list and watch them?") from error
