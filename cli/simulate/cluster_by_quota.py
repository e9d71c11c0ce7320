"""Quota alone: without a Node one takes the place of the cluster, with as much as queues bring.

What the top queues have of their own, else may have at most, is all there is; of a resource that one of them does not
name there is no end.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube import objects
from model.queue import Queue
from model.resources import CPU, PODS
from scheduler.core.queues.shares import brought_by_queues
from scheduler.core.queues.tree import tree_of

NODE = "cluster"
"""The node on which everything is that quota lets run."""
_ENDLESS = 1 << 50
"""More than any machine has, and few enough for sums of 64 bits."""


def cluster_node(queues: Iterable[Queue], requested: Iterable[str]) -> objects.Node:
    """With what the queues bring, and no end of other resources that are `requested`."""
    amounts = dict.fromkeys((*requested, PODS), _ENDLESS)
    brought: dict[str, int] = {}
    for (_, resource), amount in brought_by_queues(tree_of(queues)).items():
        brought[resource] = brought.get(resource, 0) + amount
    amounts |= {name: min(amount, _ENDLESS) for name, amount in brought.items()}
    told = {name: f"{amount}m" if name == CPU else str(amount) for name, amount in sorted(amounts.items())}
    metadata = objects.Metadata(name=NODE, labels={"kubernetes.io/hostname": NODE})
    return objects.Node(metadata=metadata, status=objects.NodeStatus(allocatable=dict(told)))
