"""What the node says about itself, and what it leaves alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from local.node import nodeobject
from local.node.machine import Machine, read_machine

MACHINE = Machine(2, 24684084 << 10, 1 << 40, "amd64", "6.18", "Debian", "m", "b", "0.1.0")
NOW = datetime(2030, 1, 2, tzinfo=UTC)


def test_status() -> None:
    """Only our own keys, so that the agent's batch resources survive every patch."""
    status = nodeobject.status("n1", MACHINE, 1234, ready=True, since=NOW, now=NOW)
    assert set(status["capacity"]) == set(status["allocatable"]) == {"cpu", "memory", "pods", "ephemeral-storage"}
    assert status["capacity"]["memory"] == "24684084Ki"
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 1234}}
    assert {each["type"]: each["address"] for each in status["addresses"]} == {
        "InternalIP": "127.0.0.1",
        "Hostname": "n1",
    }


def test_readiness() -> None:
    """Ready follows; the pressures never hold."""
    for ready in (True, False):
        conditions = {each["type"]: each["status"] for each in nodeobject.conditions(ready=ready, since=NOW, now=NOW)}
        assert conditions == {
            "Ready": str(ready),
            "MemoryPressure": "False",
            "DiskPressure": "False",
            "PIDPressure": "False",
        }


def test_new_node() -> None:
    """A new Node keeps pods away until it is ready."""
    node = nodeobject.new_node("n1", MACHINE)
    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"


def test_true_capacity(tmp_path: Path) -> None:
    """The machine's own numbers."""
    machine = read_machine(tmp_path)
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert machine.memory_bytes == int(total.split()[1]) << 10
    assert machine.cpu_count >= 1 and machine.storage_bytes > 0
