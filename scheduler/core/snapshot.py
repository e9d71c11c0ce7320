"""The cluster at one moment, as arrays: one row a node, one column a resource."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from model.node import Node, Taint
from model.resources import PODS
from model.storage import Claim, Volume
from scheduler.core.podclass import Tolerance

Amounts: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Usage: TypeAlias = Mapping[str, Mapping[str, int]]
"""Node name → resource → amount in base units."""

LARGEST_ALLOCATABLE = 1 << 60
LARGEST_AMOUNT = 1 << 61
"""Larger amounts are cut, so that sums of two stay inside int64 and a cut request never fits a cut node."""


class Verdicts(msgspec.Struct, frozen=True, eq=False):
    """Per node, why it is out whatever its room: `reason_of` indexes `reasons`, −1 where the node is admissible."""

    reasons: tuple[str, ...]
    reason_of: Amounts

    @property
    def admissible(self) -> Mask:
        return np.asarray(self.reason_of < 0)


class Surroundings(msgspec.Struct, frozen=True):
    """What filters read that is no node: claims by `namespace/name`, volumes by name, labels by namespace."""

    claims: Mapping[str, Claim] = {}
    volumes: Mapping[str, Volume] = {}
    namespaces: Mapping[str, Mapping[str, str]] = {}


class NodeTraits(msgspec.Struct, frozen=True, eq=False):
    """What filters read besides amounts, a tuple entry a row; `verdicts` remembers answers for these very traits.

    `closed` nodes hold something whose size is not known.
    """

    labels: tuple[Mapping[str, str], ...]
    taints: tuple[tuple[Taint, ...], ...]
    unschedulable: Mask
    closed: Mask
    names: tuple[str, ...] = ()
    surroundings: Surroundings = Surroundings()
    verdicts: dict[Tolerance, Verdicts] = msgspec.field(default_factory=dict)


class ClusterSnapshot(msgspec.Struct, frozen=True, eq=False):
    """Rows in order of node name, columns in order of resource name; amounts in base units, never written to.

    A resource that a node does not list has allocatable 0 there. Column `pods` counts pods.
    """

    names: tuple[str, ...]
    resources: tuple[str, ...]
    allocatable: Amounts
    requested: Amounts
    traits: NodeTraits

    @property
    def free(self) -> Amounts:
        """A new array, node × resource, of what is not requested; negative where a node shrank below its use."""
        return np.asarray(self.allocatable - self.requested)

    @property
    def totals(self) -> dict[str, int]:
        """Resource → exact sum of allocatable over all nodes."""
        high, low = (self.allocatable >> 32).sum(axis=0), (self.allocatable & 0xFFFFFFFF).sum(axis=0)
        return {name: (int(high[c]) << 32) + int(low[c]) for c, name in enumerate(self.resources)}


def take(
    nodes: Mapping[str, Node],
    usage: Usage,
    previous: ClusterSnapshot | None = None,
    changed: Collection[str] = (),
    closed: Collection[str] = (),
) -> ClusterSnapshot:
    """The snapshot of `nodes` with `usage`; rows that are not in `changed` are taken over from `previous`.

    `closed` are names of nodes that get no new pods, whatever their room.
    """
    if previous is None or not _same_shape(previous, nodes, changed, closed):
        return _build(nodes, usage, closed)
    if not changed:
        return previous
    allocatable, requested = previous.allocatable.copy(), previous.requested.copy()
    rows = {name: row for row, name in enumerate(previous.names)}
    for name in changed:
        allocatable[rows[name]] = _row(previous.resources, nodes[name].allocatable.amounts, LARGEST_ALLOCATABLE)
        requested[rows[name]] = _row(previous.resources, usage.get(name, {}), LARGEST_AMOUNT)
    return _sealed(previous.names, previous.resources, allocatable, requested, previous.traits)


def _same_shape(
    previous: ClusterSnapshot, nodes: Mapping[str, Node], changed: Collection[str], closed: Collection[str]
) -> bool:
    """Whether only amounts can differ."""
    if len(previous.names) != len(nodes):
        return False
    rows = {name: row for row, name in enumerate(previous.names)}
    return all(
        name in rows and name in nodes and _same_traits(previous, rows[name], nodes[name], closed=name in closed)
        for name in changed
    )


def _same_traits(previous: ClusterSnapshot, row: int, node: Node, *, closed: bool) -> bool:
    traits = previous.traits
    return (
        traits.labels[row] == node.labels
        and traits.taints[row] == node.taints
        and bool(traits.unschedulable[row]) == node.unschedulable
        and bool(traits.closed[row]) == closed
        and all(name in previous.resources for name in node.allocatable)
    )


def _build(nodes: Mapping[str, Node], usage: Usage, closed: Collection[str]) -> ClusterSnapshot:
    names = tuple(sorted(nodes))
    resources = tuple(sorted({PODS, *(resource for node in nodes.values() for resource in node.allocatable)}))
    shape = (len(names), len(resources))
    allocatable, requested = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, name in enumerate(names):
        allocatable[row] = _row(resources, nodes[name].allocatable.amounts, LARGEST_ALLOCATABLE)
        requested[row] = _row(resources, usage.get(name, {}), LARGEST_AMOUNT)
    traits = NodeTraits(
        labels=tuple(nodes[name].labels for name in names),
        taints=tuple(nodes[name].taints for name in names),
        unschedulable=np.array([nodes[name].unschedulable for name in names], bool),
        closed=np.array([name in closed for name in names], bool),
        names=names,
    )
    return _sealed(names, resources, allocatable, requested, traits)


def _row(resources: tuple[str, ...], amounts: Mapping[str, int], largest: int) -> list[int]:
    return [min(amounts.get(resource, 0), largest) for resource in resources]


def _sealed(
    names: tuple[str, ...], resources: tuple[str, ...], allocatable: Amounts, requested: Amounts, traits: NodeTraits
) -> ClusterSnapshot:
    allocatable.setflags(write=False)
    requested.setflags(write=False)
    return ClusterSnapshot(names, resources, allocatable, requested, traits)
