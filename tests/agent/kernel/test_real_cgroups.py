"""Reader, executor and brake against this host's own cgroup v1, below a throw-away prefix."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.brake import BrakePlan
from agent.core.layout import KubepodsLayout
from agent.core.limits import Knobs
from agent.core.observation import CgroupSample
from agent.core.plan import Write
from agent.edge.brake import BrakeThread
from agent.edge.cgroupfs import CgroupReader
from agent.edge.executor import KnobExecutor, Originals
from model.decision import Decision, Term, Unit
from model.reason import Reason

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "memory")
SPIN = "while True: pass"

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(
        os.geteuid() != 0 or not os.access(ROOT / "cpu" / "cpu.shares", os.W_OK),
        reason="needs root and writable cgroup v1; run as root on a v1 host",
    ),
]


class Tree:
    """kubepods with besteffort and burstable under our own name."""

    def __init__(self) -> None:
        self.layout = KubepodsLayout(f"/sublet-test-{secrets.token_hex(4)}/kubepods")
        self.processes: list[subprocess.Popen[bytes]] = []
        for controller in CONTROLLERS:
            for group in ("besteffort", "burstable"):
                (ROOT / controller / self.layout.root.lstrip("/") / group).mkdir(parents=True)

    def spin(self, group: str) -> None:
        """A busy process in `group`; it joins before it spins."""
        process = subprocess.Popen([sys.executable, "-c", f"input(); exec({SPIN!r})"], stdin=subprocess.PIPE)
        self.processes.append(process)
        for controller in CONTROLLERS:
            (ROOT / controller / self.layout.root.lstrip("/") / group / "cgroup.procs").write_text(str(process.pid))
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()

    def remove(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        top = self.layout.root.split("/")[1]
        for controller in CONTROLLERS:
            for folder in sorted((ROOT / controller / top).rglob("*/"), key=lambda p: -len(p.parts)):
                remove(folder)
            remove(ROOT / controller / top)


def remove(folder: Path) -> None:
    """A cgroup is busy for a moment after its last process died."""
    for _ in range(100):
        try:
            folder.rmdir()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(f"{folder} could not be removed")


@pytest.fixture
def tree() -> Iterator[Tree]:
    made = Tree()
    yield made
    made.remove()


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not condition():
        time.sleep(0.02)
    return condition()


def write(tree: Tree, value: int, previous: int) -> Write:
    knob = Knobs.of(tree.layout).quota
    return Write(
        knob,
        value,
        previous,
        Decision(knob.subject, knob.file, value, Unit.MICROSECONDS, Reason.QUOTA_LOWERED, (Term("x", value),)),
    )


def test_reader_sees_a_process_work(tree: Tree) -> None:
    """CPU time of the aggregate grows by what its child uses."""
    reader = CgroupReader(ROOT)
    reader.require(tree.layout)
    before = reader.sample(tree.layout.root)
    tree.spin("burstable")

    def used() -> bool:
        now = reader.sample(tree.layout.root)
        return isinstance(now, CgroupSample) and isinstance(before, CgroupSample) and now.cpu_ns > before.cpu_ns + 10**8

    assert eventually(used)
    reader.close()


def test_the_kernel_keeps_what_the_executor_writes(tree: Tree, tmp_path: Path) -> None:
    """A refused value is an outcome that names the file; restore brings -1 and 1024 back."""
    executor = KnobExecutor(ROOT, Originals(tmp_path / "agent.json"))
    knobs = Knobs.of(tree.layout)
    assert executor.read(knobs.quota) == -1
    assert executor.apply((write(tree, 50_000, -1),), 0)[0].error == "" and executor.read(knobs.quota) == 50_000
    refused = executor.apply((write(tree, 999, 50_000),), 0)[0]
    assert "cpu.cfs_quota_us: Invalid argument" in refused.error and executor.read(knobs.quota) == 50_000
    assert executor.restore() == 1 and executor.read(knobs.quota) == -1


def test_the_brake_cuts_a_real_surge(tree: Tree, tmp_path: Path) -> None:
    """A process that starts to spin among online pods lowers the quota file without any tick."""
    executor = KnobExecutor(ROOT, Originals(tmp_path / "agent.json"))
    knobs = Knobs.of(tree.layout)
    full = (os.cpu_count() or 1) * 100_000
    executor.apply((write(tree, full, -1),), 0)
    woken = threading.Event()
    brake = BrakeThread(ROOT, tree.layout, 0.1, executor.lower, woken.set)
    brake.arm(BrakePlan(knobs.quota, (Term("capacity", full),), full, 2000, full, 10_000))
    brake.start()
    try:
        tree.spin("burstable")
        assert woken.wait(20)
        cut = brake.drain()[0]
        assert cut.previous_us == full and cut.value_us == max(full - cut.online_us, 2000)
        held = executor.read(knobs.quota)
        assert isinstance(held, int) and held <= cut.value_us
    finally:
        brake.stop()
