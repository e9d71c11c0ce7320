"""Quota alone: without a Node one takes the place of the cluster, with as much as queues bring, and one that of each
flavour.

What the top queues have of their own, else may have at most, is all there is; of a resource that one of them does not
name there is no end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kube import objects
from model.flavor.resource_flavor import ResourceFlavor
from model.queue import NO_FLAVOR, Queue
from model.resources import CPU, PODS
from scheduler.core.queues.shares import brought_by_queues
from scheduler.core.queues.tree import tree_of

NODE = "cluster"
"""The node on which everything is that quota lets run."""
_ENDLESS = 1 << 50
"""More than any machine has, and few enough for sums of 64 bits."""


def cluster_nodes(
    queues: Iterable[Queue], requested: Iterable[str], flavors: Mapping[str, ResourceFlavor]
) -> tuple[objects.Node, ...]:
    """One with what the queues bring, and one for each flavour that a queue counts by, with its labels and amounts; of
    other resources that are `requested` there is no end.
    """
    tree, endless = tree_of(queues), dict.fromkeys((*requested, PODS), _ENDLESS)
    brought: dict[str, dict[str, int]] = {NO_FLAVOR: {}}
    for (flavor, resource), amount in brought_by_queues(tree).items():
        own = brought.setdefault(flavor, {})
        own[resource] = own.get(resource, 0) + amount
    return tuple(
        _node(NODE, endless | own, {})
        if flavor == NO_FLAVOR
        else _node(flavor, endless | own, _labels(flavors, flavor))
        for flavor, own in sorted(brought.items())
    )


def _labels(flavors: Mapping[str, ResourceFlavor], name: str) -> Mapping[str, str]:
    return flavors[name].node_labels if name in flavors else {}


def _node(name: str, amounts: Mapping[str, int], labels: Mapping[str, str]) -> objects.Node:
    bounded = {resource: min(amount, _ENDLESS) for resource, amount in sorted(amounts.items())}
    told = {resource: f"{amount}m" if resource == CPU else str(amount) for resource, amount in bounded.items()}
    metadata = objects.Metadata(name=name, labels={"kubernetes.io/hostname": name, **labels})
    return objects.Node(metadata=metadata, status=objects.NodeStatus(allocatable=dict(told)))
