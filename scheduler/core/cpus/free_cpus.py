"""Free CPUs: what one node has left to give to pods, and which CPUs a pod would rather not share."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from model.cpubinding import (
    BindPolicy,
    BoundCpus,
    CpuLayout,
    CpuRequest,
    CpuRules,
    ExclusivePolicy,
    NodeCpus,
    NumaStrategy,
)

INVALID_TOPOLOGY = "node(s) invalid CPU Topology"
POLICY_CONFLICT = "node(s) cpu bind policy conflicts with pod's required cpu bind policy"
SMT_ALIGNMENT = "node(s) requested cpus not multiple cpus per core"
NOT_ENOUGH = "not enough cpus available to satisfy request"
REASONS = (INVALID_TOPOLOGY, POLICY_CONFLICT, SMT_ALIGNMENT, NOT_ENOUGH)
"""Koordinator's words (pkg/scheduler/plugins/nodenumaresource/plugin.go, cpu_accumulator.go)."""

_CHEAP_CPUS = 64
"""So many cost next to nothing, whatever is said of them: a Node may say less than its machine has."""


class FreeCpus(msgspec.Struct, frozen=True, cache_hash=True):
    """Masks of one node's CPUs: `free` ones, and those on cores or NUMA nodes that exclusive pods are on.

    Equal values give equal answers, so that nodes alike are asked once.
    """

    layout: CpuLayout
    free: int
    exclusive_cores: int = 0
    exclusive_nodes: int = 0
    strategy: NumaStrategy = NumaStrategy.LEAST_ALLOCATED
    policy: BindPolicy | None = None

    def barred(self, exclusive: ExclusivePolicy) -> int:
        """CPUs that a pod of the policy takes only where there are no others."""
        if exclusive is ExclusivePolicy.PCPU_LEVEL:
            return self.exclusive_cores
        return self.exclusive_nodes if exclusive is ExclusivePolicy.NUMA_NODE_LEVEL else 0


def free_cpus(node: NodeCpus, bound: Iterable[BoundCpus], rules: CpuRules) -> FreeCpus:
    """What a node has left beside CPUs that pods have already; the kubelet's policy comes before the label's.

    An agent's word of many more CPUs than the Node has is none: whoever has its token cannot change what the kubelet
    tells, and what choosing costs grows with the square of CPUs, cores and NUMA nodes.
    """
    layout, taken, cores, nodes = _believed(node.layout, rules), node.kept, 0, 0
    for each in bound:
        taken |= each.cpus
        if each.exclusive is ExclusivePolicy.PCPU_LEVEL:
            cores |= _touched(layout.cores, each.cpus)
        elif each.exclusive is ExclusivePolicy.NUMA_NODE_LEVEL:
            nodes |= _touched((mask for _, mask in layout.nodes), each.cpus)
    every = 0
    for _, mask in layout.nodes:
        every |= mask
    return FreeCpus(layout, every & ~taken, cores, nodes, rules.strategy, node.policy or rules.policy)


def _believed(layout: CpuLayout, rules: CpuRules) -> CpuLayout:
    if rules.most is None or sum(core.bit_count() for core in layout.cores) <= max(rules.most, _CHEAP_CPUS):
        return layout
    return CpuLayout()


def asked_of(request: CpuRequest, node: FreeCpus) -> CpuRequest | str:
    """What the node and the pod together require; where that cannot be, why not."""
    if not node.layout.cores:
        return INVALID_TOPOLOGY
    if node.policy is not None:
        if request.required and request.policy is not node.policy:
            return POLICY_CONFLICT
        request = msgspec.structs.replace(request, policy=node.policy, required=True)
    whole = request.required and request.policy is BindPolicy.FULL_PCPUS
    return SMT_ALIGNMENT if whole and request.count % node.layout.threads else request


def _touched(groups: Iterable[int], cpus: int) -> int:
    """All CPUs of the groups that have one of these."""
    found = 0
    for group in groups:
        found |= group if group & cpus else 0
    return found
