"""Lending and reports of a simulated node, by the agent's own rules. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from agent.core.lend.offer import Published, due_for_node, offered
from agent.core.lend.reclaimable import LendingFacts, lending
from local.simnodes.usage import NodeUse
from model.node import Node
from model.nodemetric import NodeMetric, PodMetric
from model.pod.pod import Pod
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY
from model.strategy import ColocationStrategy

LENT = (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)
_STRATEGY = ColocationStrategy()


class SimulatedOffer(msgspec.Struct, frozen=True):
    """`published` is what the node's status must say, `due` whether it must be told so now."""

    published: Published
    due: bool

    @property
    def amounts(self) -> dict[str, int | None]:
        """By resource; None for one that is not offered."""
        return {name: self.published.amounts.get(name) for name in LENT}


def measured(use: NodeUse, pods: Iterable[Pod], now: float) -> NodeMetric:
    """The NodeMetric of that use."""
    rows = (
        PodMetric(pod.namespace, pod.name, use.pods[pod.uid], pod.colocation.band, pod.colocation.qos)
        for pod in pods
        if pod.uid in use.pods
    )
    return NodeMetric(updated_seconds=now, node=use.node, system=use.system, pods=tuple(rows))


def offer(node: Node, pods: tuple[Pod, ...], metric: NodeMetric, last: Published | None, now: float) -> SimulatedOffer:
    """By what the agent would publish for such a node and pods; `node.allocatable` is what its status says."""
    lent = lending(LendingFacts(node, pods, metric, now), _STRATEGY)
    standing = {name: node.allocatable[name] for name in LENT if name in node.allocatable}
    decisions = offered(lent, pods, _started(pods), standing, may_grow=True)
    found = Published(decisions, now)
    return SimulatedOffer(found, due_for_node(last, found.amounts, _told(standing, last), _STRATEGY, now))


def _started(pods: Iterable[Pod]) -> Collection[str]:
    return {pod.uid for pod in pods if not pod.terminal}


def _told(standing: Mapping[str, int], last: Published | None) -> Mapping[str, int]:
    return standing or (last.amounts if last else {})
