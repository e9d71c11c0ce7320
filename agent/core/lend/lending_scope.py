"""Lending scope: the node or NUMA zone a formula is applied to, and the lent resource with its settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from model.decision import TermSum, Unit
from model.node import Node
from model.nodecolocation import NodeColocation
from model.nodemetric import HostApplicationMetric
from model.qos import PriorityBand, QoSClass
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY
from model.strategy import CalculatePolicy, ColocationStrategy


class Lendable(msgspec.Struct, frozen=True):
    """A native resource, the names it is lent under, and the settings that hold for it.

    `batch_cap_pct` is None without a cap. `fractions` is how many parts a base unit is split into when zones share an
    amount: Kubernetes counts both a CPU and a byte in thousandths, and milli-CPU is the base unit already.
    """

    native: str
    batch: str
    mid: str
    unit: Unit
    fractions: int
    policy: CalculatePolicy
    reclaim_threshold_pct: int
    batch_cap_pct: int | None
    batch_cap_name: str
    mid_cap_pct: int
    mid_cap_name: str
    mid_static_pct: int

    def of(self, usage: Usage) -> int:
        """This resource's part of a usage."""
        return usage.cpu_millis if self.native == CPU else usage.memory_bytes


def lendables(strategy: ColocationStrategy) -> tuple[Lendable, Lendable]:
    """CPU and memory. Koordinator knows no `request` policy for CPU: there it means `usage`."""
    by_request = strategy.cpu_policy is CalculatePolicy.REQUEST
    cpu = Lendable(
        native=CPU,
        batch=BATCH_CPU,
        mid=MID_CPU,
        unit=Unit.MILLI_CPU,
        fractions=1,
        policy=CalculatePolicy.USAGE if by_request else strategy.cpu_policy,
        reclaim_threshold_pct=strategy.cpu_reclaim_threshold_pct,
        batch_cap_pct=strategy.batch_cpu_threshold_pct,
        batch_cap_name="batchCPUThresholdPercent",
        mid_cap_pct=strategy.mid_cpu_threshold_pct,
        mid_cap_name="midCPUThresholdPercent",
        mid_static_pct=strategy.mid_static_cpu_reserved_pct,
    )
    memory = Lendable(
        native=MEMORY,
        batch=BATCH_MEMORY,
        mid=MID_MEMORY,
        unit=Unit.BYTES,
        fractions=1000,
        policy=strategy.memory_policy,
        reclaim_threshold_pct=strategy.memory_reclaim_threshold_pct,
        batch_cap_pct=strategy.batch_memory_threshold_pct,
        batch_cap_name="batchMemoryThresholdPercent",
        mid_cap_pct=strategy.mid_memory_threshold_pct,
        mid_cap_name="midMemoryThresholdPercent",
        mid_static_pct=strategy.mid_static_memory_reserved_pct,
    )
    return cpu, memory


class SystemUse(msgspec.Struct, frozen=True):
    """Use outside all pods: what is left over, and host applications that matter more than the lent class."""

    system: Usage
    host_applications: Usage = Usage()


class LendingScope(msgspec.Struct, frozen=True):
    """A node, or one zone of it, in one resource's base unit; `source` says where the capacity was read.

    `system` includes `host_applications`.
    """

    subject: str
    capacity: int
    source: str
    system: int
    host_applications: int
    reserved: int

    @property
    def occupied(self) -> int:
        """What is gone before any pod: system use and reservation overlap, so the larger one counts."""
        return max(self.system, self.reserved)


def system_use(
    system: Usage, applications: Iterable[HostApplicationMetric], counted: Collection[PriorityBand]
) -> SystemUse:
    """System use plus that of host applications of the `counted` bands.

    One without a priority is of the band its QoS class implies, as a pod is: leaving it out would lend what it uses.
    """
    cpu = memory = 0
    for application in applications:
        band = application.band
        if band is PriorityBand.NONE:
            band = PriorityBand.BATCH if application.qos is QoSClass.BE else PriorityBand.PROD
        if band in counted:
            cpu += application.usage.cpu_millis
            memory += application.usage.memory_bytes
    return SystemUse(Usage(system.cpu_millis + cpu, system.memory_bytes + memory), Usage(cpu, memory))


def node_scope(resource: Lendable, node: Node, colocation: NodeColocation, use: SystemUse) -> LendingScope:
    """The whole node. Reserved is the larger of kubelet's reservation and the Node's annotation.

    Amplification raises allocatable above what kubelet left over, so the raw amount tells kubelet's reservation.
    """
    name = resource.native
    capacity, allocatable = node.capacity[name], node.allocatable[name]
    if colocation.raw_allocatable is not None and name in colocation.raw_allocatable:
        allocatable = min(allocatable, colocation.raw_allocatable[name])
    return LendingScope(
        subject=f"node/{node.name}",
        capacity=capacity,
        source="node status",
        system=resource.of(use.system),
        host_applications=resource.of(use.host_applications),
        reserved=max(capacity - allocatable, colocation.reserved[name], 0),
    )


def share(amount: int, pct: int) -> int:
    """`pct` percent of an amount as Koordinator cuts it: a rounded ratio first, then the product towards zero."""
    return int(amount * (pct / 100))


def cap(terms: TermSum, scope: LendingScope, name: str, pct: int | None) -> None:
    """Never below zero, at most `pct` percent of capacity, and never more than there is."""
    terms.at_least("floor", 0, "nothing is lent below zero")
    if pct is not None:
        terms.at_most(f"cap {name}", share(scope.capacity, pct), f"{pct} % of capacity")
    terms.at_most("capacity cap", scope.capacity, "no more than the whole is lent")
