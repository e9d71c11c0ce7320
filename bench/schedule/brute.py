"""The fewest victims there can be, by trying every set of them: of as low a priority as will do, then as few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from model.node import Node
from model.pod.pod import Pod
from model.resources import PODS


def fewest_victims(
    nodes: Sequence[Node], pods: Sequence[Pod], wanted: tuple[Mapping[str, int], int], priority: int
) -> int | None:
    """How many pods of lower priority must go for so many like members to fit; None where that never helps.

    Two of low priority go before one of higher, as for kube-scheduler. `wanted` is one member's request and how
    many there are. For small cases: it tries all sets.
    """
    for worst in sorted({pod.spec.priority for pod in pods if pod.spec.priority < priority} | {priority - 1}):
        found = _fewest(nodes, pods, wanted, worst)
        if found is not None:
            return found
    return None


def _fewest(
    nodes: Sequence[Node], pods: Sequence[Pod], wanted: tuple[Mapping[str, int], int], worst: int
) -> int | None:
    """With victims of at most this priority."""
    legal = [pod for pod in pods if pod.spec.priority <= worst]
    for number in range(len(legal) + 1):
        for gone in combinations(legal, number):
            left = {pod.uid for pod in gone}
            if _room(nodes, [pod for pod in pods if pod.uid not in left], wanted[0]) >= wanted[1]:
                return number
    return None


def _room(nodes: Iterable[Node], pods: Sequence[Pod], request: Mapping[str, int]) -> int:
    """How many members all nodes take together."""
    total = 0
    for node in nodes:
        there = [pod for pod in pods if pod.spec.node_name == node.name]
        total += min(_times(node, there, name, amount) for name, amount in request.items())
    return total


def _times(node: Node, pods: Sequence[Pod], name: str, amount: int) -> int:
    used = len(pods) if name == PODS else sum(pod.spec.requests[name] for pod in pods)
    return max(0, (node.allocatable[name] - used) // amount)
