"""A node's lending as the cluster's objects say it: condition, NodeMetric and allocatable resources."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from kube import objects
from kube.client import KubeClient, path_of
from kube.dialects.koordinator import nodemetric
from kube.dialects.koordinator.offer import offer
from kube.dialects.upstream import core_objects
from model.condition import ConditionType
from model.fault import ConfigurationFault, KubernetesFault
from model.strategy import ColocationStrategy
from view.lending_cause import LendingRecord

T = TypeVar("T")
DEGRADE_SECONDS = ColocationStrategy().degrade_seconds
_NODES, _NODE_METRICS = "v1/nodes", "slo.koordinator.sh/v1alpha1/nodemetrics"
_NOT_FOUND = 404


def account_of(kubeconfig: Path, node: str, *, answers: bool | None) -> LendingRecord:
    """Asks the API server. Raises ConfigurationFault for a node that is not there, KubernetesFault where it refuses."""
    return asyncio.run(_asked(kubeconfig, node, answers))


async def _asked(kubeconfig: Path, node: str, answers: bool | None) -> LendingRecord:
    async with await KubeClient.connect(kubeconfig, "sublet-explain") as client:
        found = await _object(client, path_of(_NODES, name=node), objects.Node)
        if found is None:
            raise ConfigurationFault(f"node {node}", "is not in the cluster", "see `kubectl get nodes`")
        metric = await _object(client, path_of(_NODE_METRICS, name=node), objects.NodeMetric)
    return account(found, metric, answers)


async def _object(client: KubeClient, path: str, kind: type[T]) -> T | None:
    """None where there is no such object, or no such kind."""
    try:
        return await client.get(path, kind)
    except KubernetesFault as fault:
        if fault.status == _NOT_FOUND:
            return None
        raise


def account(node: objects.Node, metric: objects.NodeMetric | None, answers: bool | None) -> LendingRecord:
    """The objects' content as facts. Raises ConfigurationFault for a NodeMetric or an amount that cannot be read."""
    name = node.metadata.name
    told = next((each for each in node.status.conditions or () if each.type == ConditionType.COLOCATION_READY), None)
    found = offer(core_objects.node(node))
    return LendingRecord(
        name,
        _seconds(told.last_heartbeat_time) if told else None,
        told is not None and told.met,
        told.reason if told else "",
        nodemetric.node_metric(metric).updated_seconds if metric else None,
        found.node.allocatable,
        answers,
        found.doubt,
    )


def _seconds(moment: str | None) -> float | None:
    """Unix time of an RFC 3339 text, None where it is none."""
    try:
        return datetime.fromisoformat(moment).timestamp() if moment else None
    except ValueError:
        return None
