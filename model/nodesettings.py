"""The settings in force for one node, once every document that speaks of it was read."""

from __future__ import annotations

import msgspec

from model.qos import CpuQosStrategy, MemoryQosStrategy, UclampStrategy
from model.strategy import (
    BurstStrategy,
    ColocationStrategy,
    EvictionStrategy,
    HostApplication,
    NormalizationStrategy,
    SuppressStrategy,
)


class NodeSettings(msgspec.Struct, frozen=True):
    """What the agent's own settings, the cluster's ConfigMap, NodeSLO, NodeMetric and the Node itself make together."""

    colocation: ColocationStrategy = ColocationStrategy()
    suppress: SuppressStrategy = SuppressStrategy()
    normalization: NormalizationStrategy = NormalizationStrategy()
    eviction: EvictionStrategy = EvictionStrategy()
    burst: BurstStrategy = BurstStrategy()
    host_applications: tuple[HostApplication, ...] = ()
    memory_qos: MemoryQosStrategy = MemoryQosStrategy()
    cpu_qos: CpuQosStrategy = CpuQosStrategy()
    uclamp: UclampStrategy = UclampStrategy()
    oom_scores: bool = False
