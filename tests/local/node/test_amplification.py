"""What a node claims beyond the machine is told as amplification, and never lent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.core.lend.batch import batch
from agent.core.lend.lending_scope import lendables, node_scope, system_use
from embedded.node.machine.facts import Machine, read_machine
from embedded.node.machine.share import Claim, share_of
from embedded.node.registration import node_object
from kube.dialects.koordinator.labels import raw_allocatable
from local.node import amplification
from model.node import Node
from model.nodecolocation import NodeColocation
from model.report import Usage
from model.resources import CPU, MEMORY, parse_resources
from model.strategy import CalculatePolicy, ColocationStrategy

MACHINE = Machine(2000, 24684084 << 10, 1 << 40, "amd64", "6.18", "Debian", "m", "b", "0.1.0")
NOW = datetime(2030, 1, 2, tzinfo=UTC)


POLICIES = [(policy, name) for policy in CalculatePolicy for name in (CPU, MEMORY)]


def lent(policy: CalculatePolicy, name: str, claim: Claim, reclaim_pct: int) -> int:
    """As batch on a machine of 2 CPUs and 24 GiB where nothing runs: what is only claimed is in use, as `view` has it."""
    share = share_of(1, 1, range(2), 24 << 30, claim)
    machine = read_machine(Path("/"), share)
    told = {key: text for key, text in amplification.raw_allocatable(machine).items() if text is not None}
    amounts = parse_resources(node_object.amounts(machine), "node")
    node = Node("n", amounts, amounts, annotations=told)
    strategy = ColocationStrategy(
        cpu_policy=policy,
        memory_policy=policy,
        cpu_reclaim_threshold_pct=reclaim_pct,
        memory_reclaim_threshold_pct=reclaim_pct,
    )
    (resource,) = [each for each in lendables(strategy) if each.native == name]
    phantom = Usage(amounts[CPU] - share.bound_cpu_millis, amounts[MEMORY] - share.bound_memory_bytes)
    colocation = NodeColocation(raw_allocatable=raw_allocatable(node))
    return batch(resource, node_scope(resource, node, colocation, system_use(phantom, (), ())), (), 0.0).value


@pytest.mark.parametrize(("policy", "name"), POLICIES)
def test_what_is_only_claimed_is_never_lent(policy: CalculatePolicy, name: str) -> None:
    """Under every policy, and taken off once: without a margin exactly what is there is lent."""
    there = {CPU: 2000, MEMORY: 24 << 30}[name]
    assert lent(policy, name, Claim("16", "256Gi"), 100) == there
    assert lent(policy, name, Claim("16", "256Gi"), 65) == 0
    assert lent(policy, name, Claim("2", "24Gi"), 100) == there
    assert lent(policy, name, Claim("1", "6Gi"), 100) == there // {CPU: 2, MEMORY: 4}[name]


def test_a_claim_is_told_as_amplification() -> None:
    """On the Node from its first moment; a node that claims nothing removes what an earlier run told."""
    key = "node.koordinator.sh/raw-allocatable"
    machine = read_machine(Path("/"), share_of(1, 1, range(2), 24 << 30, Claim("4", "1Gi")))
    told = node_object.new_node("n", machine, "", amplification.raw_allocatable(machine))["metadata"]["annotations"]
    assert json.loads(told[key]).items() >= {"cpu": "2", "memory": f"{1 << 20}Ki"}.items()
    assert amplification.raw_allocatable(MACHINE) == {key: None}
    assert (
        node_object.new_node("n", MACHINE, "", amplification.raw_allocatable(MACHINE))["metadata"]["annotations"] == {}
    )
