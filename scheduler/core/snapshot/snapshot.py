"""The cluster at one moment, as arrays: one row a node, one column a resource."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from model.cpubinding import CpuRules, NodeCpus
from model.node import Node, Taint
from model.resources import PODS
from model.storage import Volume, VolumeClaim
from scheduler.core.snapshot.node_index import NodeIndex
from scheduler.core.snapshot.podclass import Tolerance

Amounts: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Usage: TypeAlias = Mapping[str, Mapping[str, int]]
"""Node name → resource → amount in base units."""


@runtime_checkable
class UseTables(Protocol):
    """What pods use, by node: as the ledger has it."""

    def requested(self, names: Sequence[str], resources: Sequence[str]) -> Amounts:
        """What pods request, node × resource."""

    def scored(self, names: Sequence[str], resources: Sequence[str]) -> Amounts:
        """What scores count, node × resource."""


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


class RelatedObjects(msgspec.Struct, frozen=True):
    """What filters read that is no node: claims by `namespace/name`, volumes by name, labels by namespace, CPUs by
    node."""

    claims: Mapping[str, VolumeClaim] = {}
    volumes: Mapping[str, Volume] = {}
    namespaces: Mapping[str, Mapping[str, str]] = {}
    cpus: Mapping[str, NodeCpus] = {}


class NodeTraits(msgspec.Struct, frozen=True, eq=False):
    """What filters read besides amounts, a tuple entry a row; `verdicts` and `index` remember what was asked of them.

    `closed` nodes hold something whose size is not known.
    """

    labels: tuple[Mapping[str, str], ...]
    taints: tuple[tuple[Taint, ...], ...]
    unschedulable: Mask
    closed: Mask
    names: tuple[str, ...] = ()
    related: RelatedObjects = RelatedObjects()
    cpu_rules: tuple[CpuRules, ...] = ()
    verdicts: dict[Tolerance, Verdicts] = msgspec.field(default_factory=dict)
    index: NodeIndex = msgspec.field(default_factory=NodeIndex)

    def forget(self) -> None:
        """What was asked of them."""
        self.verdicts.clear()
        self.index.masks.clear()
        self.index.namespaces.clear()


class ClusterSnapshot(msgspec.Struct, frozen=True, eq=False):
    """Rows in order of node name, columns in order of resource name; amounts in base units, never written to.

    A resource that a node does not list has allocatable 0 there. Column `pods` counts pods. `scored` is what scores
    take to be used, which is more than `requested` where pods ask for nothing. `rows` is where each node is.
    """

    names: tuple[str, ...]
    resources: tuple[str, ...]
    allocatable: Amounts
    requested: Amounts
    scored: Amounts
    traits: NodeTraits
    rows: Mapping[str, int]

    @property
    def free(self) -> Amounts:
        """A new array, node × resource, of what is not requested; negative where a node shrank below its use."""
        return np.asarray(self.allocatable - self.requested)

    @property
    def totals(self) -> dict[str, int]:
        """Resource → exact sum of allocatable over all nodes."""
        high, low = (self.allocatable >> 32).sum(axis=0), (self.allocatable & 0xFFFFFFFF).sum(axis=0)
        return {name: (int(high[c]) << 32) + int(low[c]) for c, name in enumerate(self.resources)}


class SnapshotContext(msgspec.Struct, frozen=True, eq=False):
    """What a snapshot shows besides nodes: `closed` nodes get no new pods, whatever their room."""

    closed: Collection[str] = ()
    related: RelatedObjects = RelatedObjects()


BARE = SnapshotContext()


def take(
    nodes: Mapping[str, Node],
    usage: Usage | UseTables,
    previous: ClusterSnapshot | None = None,
    changed: Collection[str] = (),
    around: SnapshotContext = BARE,
) -> ClusterSnapshot:
    """The snapshot of `nodes` with `usage`; rows that are not in `changed` are taken over from `previous`.

    With UseTables only nodes that changed themselves need be in `changed`, use is read again in any case; with another
    mapping also those whose use changed. `previous` itself is returned where nothing differs.
    """
    if previous is None or not _same_shape(previous, nodes, changed, around):
        return _build(nodes, usage, around)
    if not changed and not isinstance(usage, UseTables):
        return previous
    allocatable, requested = previous.allocatable, previous.requested
    if changed:
        allocatable = allocatable.copy()
        for name in changed:
            allocatable[previous.rows[name]] = _row(
                previous.resources, nodes[name].allocatable.amounts, LARGEST_ALLOCATABLE
            )
    if isinstance(usage, UseTables):
        return _with_use(previous, allocatable, usage)
    requested = requested.copy()
    for name in changed:
        requested[previous.rows[name]] = _row(previous.resources, usage.get(name, {}), LARGEST_AMOUNT)
    return _sealed(previous, allocatable, requested, requested)


def _with_use(previous: ClusterSnapshot, allocatable: Amounts, usage: UseTables) -> ClusterSnapshot:
    requested = usage.requested(previous.names, previous.resources)
    scored = usage.scored(previous.names, previous.resources)
    known = ((allocatable, previous.allocatable), (requested, previous.requested), (scored, previous.scored))
    if all(np.array_equal(now, before) for now, before in known):
        return previous
    return _sealed(previous, allocatable, requested, scored)


def _same_shape(
    previous: ClusterSnapshot, nodes: Mapping[str, Node], changed: Collection[str], around: SnapshotContext
) -> bool:
    """Whether only amounts can differ."""
    if len(previous.names) != len(nodes) or previous.traits.related is not around.related:
        return False
    return all(
        name in previous.rows
        and name in nodes
        and _same_traits(previous, previous.rows[name], nodes[name], closed=name in around.closed)
        for name in changed
    )


def _same_traits(previous: ClusterSnapshot, row: int, node: Node, *, closed: bool) -> bool:
    traits = previous.traits
    return (
        traits.labels[row] == node.labels
        and traits.cpu_rules[row] == node.cpu_rules
        and traits.taints[row] == node.taints
        and bool(traits.unschedulable[row]) == node.unschedulable
        and bool(traits.closed[row]) == closed
        and all(name in previous.resources for name in node.allocatable)
    )


def _build(nodes: Mapping[str, Node], usage: Usage | UseTables, around: SnapshotContext) -> ClusterSnapshot:
    names = tuple(sorted(nodes))
    resources = tuple(sorted({PODS, *(resource for node in nodes.values() for resource in node.allocatable)}))
    allocatable = _table(resources, (nodes[name].allocatable.amounts for name in names), LARGEST_ALLOCATABLE)
    if isinstance(usage, UseTables):
        requested, scored = usage.requested(names, resources), usage.scored(names, resources)
    else:
        requested = scored = _table(resources, (usage.get(name, {}) for name in names), LARGEST_AMOUNT)
    traits = NodeTraits(
        labels=tuple(nodes[name].labels for name in names),
        taints=tuple(nodes[name].taints for name in names),
        unschedulable=np.array([nodes[name].unschedulable for name in names], bool),
        closed=np.array([name in around.closed for name in names], bool),
        names=names,
        related=around.related,
        cpu_rules=tuple(nodes[name].cpu_rules for name in names),
    )
    rows = {name: row for row, name in enumerate(names)}
    empty = np.zeros_like(allocatable)
    blank = ClusterSnapshot(names, resources, empty, empty, empty, traits, rows)
    return _sealed(blank, allocatable, requested, scored)


def _table(resources: tuple[str, ...], rows: Iterable[Mapping[str, int]], largest: int) -> Amounts:
    return np.array([_row(resources, amounts, largest) for amounts in rows], np.int64).reshape(-1, len(resources))


def _row(resources: tuple[str, ...], amounts: Mapping[str, int], largest: int) -> list[int]:
    return [min(amounts.get(resource, 0), largest) for resource in resources]


def _sealed(shape: ClusterSnapshot, allocatable: Amounts, requested: Amounts, scored: Amounts) -> ClusterSnapshot:
    """The snapshot with other amounts, which nobody writes to from here on."""
    for table in (allocatable, requested, scored):
        table.setflags(write=False)
    return msgspec.structs.replace(shape, allocatable=allocatable, requested=requested, scored=scored)
