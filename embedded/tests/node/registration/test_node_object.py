"""What the node says about itself, and what it leaves alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from embedded.node.machine.facts import Machine, read_machine, share_of_machine
from embedded.node.machine.share import Claim
from embedded.node.registration import node_object

MACHINE = Machine(2000, 24684084 << 10, 1 << 40, "amd64", "6.18", "Debian", "m", "b", "0.1.0")
NOW = datetime(2030, 1, 2, tzinfo=UTC)


def test_status() -> None:
    """Only our own keys, so that the agent's batch resources survive every patch."""
    status = node_object.status("n1", MACHINE, 1234, node_object.healthy(NOW).changed(NOW, ready=True), NOW)
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
        health = node_object.healthy(NOW).changed(NOW, ready=ready)
        conditions = {each["type"]: each["status"] for each in node_object.conditions(health, NOW)}
        assert conditions == {
            "Ready": str(ready),
            "MemoryPressure": "False",
            "DiskPressure": "False",
            "PIDPressure": "False",
        }


def test_pressure() -> None:
    """A condition that holds has the kubelet's words; only what changed gets a new transition time."""
    later = NOW + timedelta(minutes=1)
    health = node_object.healthy(NOW).changed(NOW, ready=True).changed(later, pressures=frozenset({"DiskPressure"}))
    rows = {each["type"]: each for each in node_object.conditions(health, later)}
    assert (rows["DiskPressure"]["status"], rows["DiskPressure"]["reason"]) == ("True", "KubeletHasDiskPressure")
    assert rows["DiskPressure"]["lastTransitionTime"] == "2030-01-02T00:01:00Z"
    assert rows["Ready"]["lastTransitionTime"] == rows["MemoryPressure"]["lastTransitionTime"] == "2030-01-02T00:00:00Z"
    assert node_object.conditions(health.changed(later, pressures=frozenset()), later)[1]["status"] == "False"


def test_new_node() -> None:
    """A new Node keeps pods away until it is ready."""
    node = node_object.new_node("n1", MACHINE, "127.65.0.0/16")
    assert (node["spec"]["podCIDR"], node["spec"]["podCIDRs"]) == ("127.65.0.0/16", ["127.65.0.0/16"])
    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"


def test_true_capacity(tmp_path: Path) -> None:
    """The machine's own numbers."""
    machine = read_machine(tmp_path, share_of_machine(1, 1, Claim()))
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert machine.memory_bytes == int(total.split()[1]) << 10
    assert machine.cpu_millis >= 1000 and machine.storage_bytes > 0
