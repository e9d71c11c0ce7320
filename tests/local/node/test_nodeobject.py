"""What the node says about itself, and what it leaves alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.core.lend.batch import batch
from agent.core.lend.lending_scope import lendables, node_scope, system_use
from kube.dialects.koordinator import raw_allocatable
from local.node import nodeobject
from local.node.machine import Machine, read_machine, share_of_machine
from local.node.share import Claim, share_of
from model.node import Node
from model.nodecolocation import NodeColocation
from model.report import Usage
from model.resources import CPU, MEMORY, parse_resources
from model.strategy import CalculatePolicy, ColocationStrategy

MACHINE = Machine(2000, 24684084 << 10, 1 << 40, "amd64", "6.18", "Debian", "m", "b", "0.1.0")
NOW = datetime(2030, 1, 2, tzinfo=UTC)


def test_status() -> None:
    """Only our own keys, so that the agent's batch resources survive every patch."""
    status = nodeobject.status("n1", MACHINE, 1234, nodeobject.healthy(NOW).changed(NOW, ready=True), NOW)
    assert set(status["capacity"]) == set(status["allocatable"]) == {"cpu", "memory", "pods", "ephemeral-storage"}
    assert status["capacity"]["memory"] == "24684084Ki"
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 1234}}
    assert {each["type"]: each["address"] for each in status["addresses"]} == {
        "InternalIP": "127.0.0.1",
        "Hostname": "n1",
    }


def test_readiness() -> None:
    """Ready follows; nothing presses at the start."""
    for ready in (True, False):
        health = nodeobject.healthy(NOW).changed(NOW, ready=ready)
        conditions = {each["type"]: each["status"] for each in nodeobject.conditions(health, NOW)}
        assert conditions == {
            "Ready": str(ready),
            "MemoryPressure": "False",
            "DiskPressure": "False",
            "PIDPressure": "False",
        }


def test_pressure() -> None:
    """A condition that holds has the kubelet's words; only what changed gets a new transition time."""
    later = NOW + timedelta(minutes=1)
    health = nodeobject.healthy(NOW).changed(NOW, ready=True).changed(later, pressures=frozenset({"DiskPressure"}))
    rows = {each["type"]: each for each in nodeobject.conditions(health, later)}
    assert (rows["DiskPressure"]["status"], rows["DiskPressure"]["reason"]) == ("True", "KubeletHasDiskPressure")
    assert rows["DiskPressure"]["lastTransitionTime"] == "2030-01-02T00:01:00Z"
    assert rows["Ready"]["lastTransitionTime"] == rows["MemoryPressure"]["lastTransitionTime"] == "2030-01-02T00:00:00Z"
    assert nodeobject.conditions(health.changed(later, pressures=frozenset()), later)[1]["status"] == "False"


def test_new_node() -> None:
    """A new Node keeps pods away until it is ready."""
    node = nodeobject.new_node("n1", MACHINE, "127.65.0.0/16")
    assert (node["spec"]["podCIDR"], node["spec"]["podCIDRs"]) == ("127.65.0.0/16", ["127.65.0.0/16"])
    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"


POLICIES = [(policy, name) for policy in CalculatePolicy for name in (CPU, MEMORY)]


def lent(policy: CalculatePolicy, name: str, claim: Claim, reclaim_pct: int) -> int:
    """As batch on a machine of 2 CPUs and 24 GiB where nothing runs: what is only claimed is in use, as `view` has it."""
    share = share_of(1, 1, range(2), 24 << 30, claim)
    machine = read_machine(Path("/"), share)
    told = {key: text for key, text in nodeobject.node_annotations(machine).items() if text is not None}
    amounts = parse_resources(nodeobject.amounts(machine), "node")
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
    told = nodeobject.new_node("n", machine)["metadata"]["annotations"]
    assert json.loads(told[key]).items() >= {"cpu": "2", "memory": f"{1 << 20}Ki"}.items()
    assert nodeobject.node_annotations(MACHINE) == {key: None}
    assert nodeobject.new_node("n", MACHINE)["metadata"]["annotations"] == {}


def test_true_capacity(tmp_path: Path) -> None:
    """The machine's own numbers."""
    machine = read_machine(tmp_path, share_of_machine(1, 1, Claim()))
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert machine.memory_bytes == int(total.split()[1]) << 10
    assert machine.cpu_millis >= 1000 and machine.storage_bytes > 0
