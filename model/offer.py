"""The part of a node's offer that is believed: no node lends more than it has, whatever its status says.

The agent's token may write the lent amounts, and cpu and memory of the node may not: these bound what is lent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from model.node import Node
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY, ResourceVector

_SLOWEST, _FASTEST = 1.0, 5.0
"""Of CPU normalization, which multiplies batch-cpu (Koordinator cpunormalization)."""
_LENT_FROM = {BATCH_CPU: CPU, BATCH_MEMORY: MEMORY, MID_CPU: CPU, MID_MEMORY: MEMORY}


class Offer(msgspec.Struct, frozen=True):
    """The node with what of its offer counts; `doubt` says what does not and why, empty where all does."""

    node: Node
    doubt: str = ""


def believed(node: Node, cpu_ratio: float | None = None) -> Offer:
    """An amount above what the node has counts as 0: whoever says one impossible thing is not to be half believed.

    `cpu_ratio` is what the Node's annotation says of its CPUs; out of range it is none.
    """
    ratio = cpu_ratio if cpu_ratio is not None and _SLOWEST <= cpu_ratio <= _FASTEST else _SLOWEST
    doubts = dict(_doubts(node, ratio))
    if not doubts:
        return Offer(node)
    counted = {name: 0 if name in doubts else amount for name, amount in node.allocatable.amounts.items()}
    return Offer(msgspec.structs.replace(node, allocatable=ResourceVector(counted)), "; ".join(doubts.values()))


def _doubts(node: Node, ratio: float) -> Iterator[tuple[str, str]]:
    for name, native in _LENT_FROM.items():
        # Capacity is what amplification leaves alone. Every kubelet tells it, and no agent may take it away.
        if native not in node.capacity:
            continue
        own = node.capacity[native]
        most = math.ceil(own * ratio) if name == BATCH_CPU else own
        if node.allocatable[name] > most:
            times = f", times its CPU ratio of {ratio:.2f}," if name == BATCH_CPU and ratio > _SLOWEST else ""
            offer = f"its offer of {node.allocatable[name]} {name} counts as 0"
            yield name, f"{offer}: the node's own {native}{times} is {most} in the same unit"
