"""Facts of this very machine, and of a made /proc."""

from __future__ import annotations

import os
import time
from pathlib import Path

from agent.core.observation import Missing, NodeSample
from agent.edge.host import HostReader
from agent.edge.network import interfaces
from model.report import Pressure

PSI = "some avg10=2.50 avg60=0.00 avg300=0.00 total=7\nfull avg10=1.25 avg60=0.00 avg300=0.00 total=0\n"


def test_this_machine() -> None:
    """CPU time grows while we work; memory and CPUs are plausible."""
    reader = HostReader(Path("/proc"))
    before = reader.sample()
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    after = reader.sample()
    reader.close()
    assert isinstance(before, NodeSample) and isinstance(after, NodeSample)
    assert after.cpu_ns >= before.cpu_ns + 50_000_000 and after.cpus == os.cpu_count()
    assert after.memory_used_bytes > 1 << 20


def test_garbage_and_absence_are_values(tmp_path: Path) -> None:
    """A /proc/stat that is none, and a kernel without pressure."""
    (tmp_path / "stat").write_text("intr 5\n")
    reader = HostReader(tmp_path)
    found = reader.sample()
    assert isinstance(found, Missing) and "is not the cpu line" in found.detail
    assert reader.pressure() is None
    (tmp_path / "pressure").mkdir()
    for name in ("cpu", "memory"):
        (tmp_path / "pressure" / name).write_text(PSI)
    assert reader.pressure() == Pressure(2.5, 2.5, 1.25)
    reader.close()


def test_interfaces_of_this_machine() -> None:
    """By netlink, sorted, loopback left out; counters equal the kernel's own files or have grown since."""
    before = {p.name: int((p / "statistics/rx_bytes").read_text()) for p in Path("/sys/class/net").iterdir()}
    found = interfaces()
    assert [traffic.name for traffic in found] == sorted(name for name in before if name != "lo")
    assert all(traffic.received_bytes >= before[traffic.name] for traffic in found)
