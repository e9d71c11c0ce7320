"""What a node has left, and what node and pod together require."""

from __future__ import annotations

import pytest
from cpu_builders import cpus, machine

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
from scheduler.core.cpus.free_cpus import (
    INVALID_TOPOLOGY,
    POLICY_CONFLICT,
    SMT_ALIGNMENT,
    FreeCpus,
    asked_of,
    free_cpus,
)

FULL, SPREAD = BindPolicy.FULL_PCPUS, BindPolicy.SPREAD_BY_PCPUS
LAYOUT = machine(2, 2, 2)
"""NUMA node 0: cores {0,4} {1,5}; node 1: {2,6} {3,7}."""


def test_free() -> None:
    """All CPUs, less those kept and those pods have; of an exclusive pod its whole core or NUMA node is marked."""
    bound = [
        BoundCpus(cpus("1")),
        BoundCpus(cpus("4"), ExclusivePolicy.PCPU_LEVEL),
        BoundCpus(cpus("7"), ExclusivePolicy.NUMA_NODE_LEVEL),
    ]
    rules = CpuRules(SPREAD, NumaStrategy.MOST_ALLOCATED)
    found = free_cpus(NodeCpus(LAYOUT, kept=cpus("2")), bound, rules)
    assert found == FreeCpus(LAYOUT, cpus("0,3,5-6"), cpus("0,4"), cpus("2-3,6-7"), *(rules.strategy, SPREAD))
    assert found.barred(ExclusivePolicy.NONE) == 0
    assert found.barred(ExclusivePolicy.PCPU_LEVEL) == cpus("0,4")
    assert found.barred(ExclusivePolicy.NUMA_NODE_LEVEL) == cpus("2-3,6-7")


@pytest.mark.parametrize(
    ("cpus_told", "most", "believed"), [(128, None, True), (128, 128, True), (128, 127, False), (64, 1, True)]
)
def test_more_cpus_than_the_node_has(cpus_told: int, most: int | None, believed: bool) -> None:
    """Whoever has the token of an agent writes what its machine is like; how many CPUs it has says the kubelet."""
    told = machine(2, cpus_told // 2, 1)
    found = free_cpus(NodeCpus(told), (), CpuRules(most=most))
    assert found.layout == (told if believed else CpuLayout()) and bool(found.free) == believed
    assert (asked_of(CpuRequest(2), found) == INVALID_TOPOLOGY) != believed


def test_the_kubelets_policy_comes_first() -> None:
    """A kubelet that keeps to whole cores does so whatever the label says."""
    assert free_cpus(NodeCpus(LAYOUT, policy=FULL), (), CpuRules(SPREAD)).policy is FULL


ASKED = {
    "nothing said": (None, CpuRequest(3), CpuRequest(3)),
    "the node's policy is required of all": (FULL, CpuRequest(2, SPREAD), CpuRequest(2, FULL, required=True)),
    "the same required twice": (SPREAD, CpuRequest(3, SPREAD, True), CpuRequest(3, SPREAD, True)),
    "another required": (SPREAD, CpuRequest(2, FULL, True), POLICY_CONFLICT),
    "half a core of whole ones": (None, CpuRequest(3, FULL, True), SMT_ALIGNMENT),
    "half a core on a node of whole ones": (FULL, CpuRequest(3), SMT_ALIGNMENT),
}


@pytest.mark.parametrize(("policy", "request_", "expected"), ASKED.values(), ids=ASKED)
def test_asked(policy: BindPolicy | None, request_: CpuRequest, expected: CpuRequest | str) -> None:
    """Koordinator's words where they do not go together."""
    assert asked_of(request_, FreeCpus(LAYOUT, cpus("0-7"), policy=policy)) == expected


def test_no_layout() -> None:
    """A node that tells no CPUs gives none."""
    assert asked_of(CpuRequest(1), FreeCpus(CpuLayout(), 0)) == INVALID_TOPOLOGY
