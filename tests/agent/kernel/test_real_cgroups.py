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

from agent.core.limit.brake import BrakePlan
from agent.core.limit.plan import Write
from agent.core.limit.watch import Watch
from agent.core.observe.files import Role
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, CgroupSample, CpuThrottling, MemoryEvents, Missing
from agent.edge.brake import BrakeThread
from agent.edge.cgroupfs import CgroupReader
from agent.edge.discovery import Discovery
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from model.decision import Decision, Term, Unit
from model.reason import Reason
from tests.agent.kernel.v1_tree import removed

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "memory")
SPIN = "held = b'x' * (32 << 20)\nwhile True: pass"
POD = "burstable/poda"

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
        self.layout = Layout(f"/sublet-test-{secrets.token_hex(4)}/kubepods")
        self.processes: list[subprocess.Popen[bytes]] = []
        for controller in CONTROLLERS:
            for group in ("besteffort", "burstable"):
                (ROOT / controller / self.layout.root.lstrip("/") / group).mkdir(parents=True)

    def mkdir(self, group: str) -> None:
        for controller in CONTROLLERS:
            (ROOT / controller / self.layout.root.lstrip("/") / group).mkdir(parents=True)

    def rmdir(self, group: str) -> None:
        """With all below it."""
        for controller in CONTROLLERS:
            top = ROOT / controller / self.layout.root.lstrip("/") / group
            for folder in (*sorted(top.rglob("*/"), key=lambda p: -len(p.parts)), top):
                removed(folder)

    def spin(self, group: str) -> None:
        """A busy process in `group`; it joins before it spins."""
        process = subprocess.Popen([sys.executable, "-c", f"input(); exec({SPIN!r})"], stdin=subprocess.PIPE)
        self.processes.append(process)
        for controller in CONTROLLERS:
            (ROOT / controller / self.layout.root.lstrip("/") / group / "cgroup.procs").write_text(str(process.pid))
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def remove(self) -> None:
        self.kill()
        top = self.layout.root.split("/")[1]
        for controller in CONTROLLERS:
            for folder in sorted((ROOT / controller / top).rglob("*/"), key=lambda p: -len(p.parts)):
                removed(folder)
            removed(ROOT / controller / top)


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


def cpu_ns(found: CgroupSample | Missing) -> int:
    assert isinstance(found, CgroupSample), found
    return found.cpu_ns


def memory_bytes(found: CgroupSample | Missing) -> int:
    assert isinstance(found, CgroupSample), found
    return found.memory_bytes


def write(tree: Tree, value: int, previous: int) -> Write:
    knob = RootKnobs.of(tree.layout).quota
    return Write(
        knob,
        value,
        previous,
        Decision(knob.subject, knob.file, value, Unit.MICROSECONDS, Reason.QUOTA_LOWERED, (Term("x", value),)),
    )


def test_reader_sees_a_process_work(tree: Tree) -> None:
    """CPU time of the aggregate and of the pod grows by what the child uses; memory is charged."""
    tree.mkdir(POD)
    reader = CgroupReader(ROOT)
    reader.require(tree.layout)
    root, pod = tree.layout.root, f"{tree.layout.root}/{POD}"
    reader.place({root: Role.ROOT, pod: Role.POD})
    before = reader.read()
    tree.spin(POD)

    def used() -> bool:
        pairs = [(before[path], found) for path, found in reader.read().items()]
        return all(cpu_ns(after) > cpu_ns(start) + 10**8 for start, after in pairs)

    assert eventually(used)
    assert eventually(lambda: memory_bytes(reader.read()[pod]) >= 28 << 20), "memory.stat follows its level to 4 MiB"
    sample = reader.read()[pod]
    assert isinstance(sample, CgroupSample)
    assert sample.events == MemoryEvents() and sample.throttling == CpuThrottling(0, 0)
    reader.close()


def test_a_removed_cgroup_is_gone_and_its_successor_starts_at_nothing(tree: Tree) -> None:
    """The kernel refuses the old descriptors even when there is a new cgroup of that name."""
    path = f"{tree.layout.root}/{POD}"
    tree.mkdir(POD)
    reader = CgroupReader(ROOT)
    reader.place({path: Role.POD})
    tree.spin(POD)
    assert eventually(lambda: cpu_ns(reader.read()[path]) > 10**7)
    kept = reader.open_descriptors
    tree.kill()
    tree.rmdir(POD)
    tree.mkdir(POD)
    assert reader.read()[path] == Missing(path, Absence.GONE, "no such cgroup")
    assert cpu_ns(reader.read()[path]) == 0 and reader.open_descriptors == kept
    tree.rmdir(POD)
    assert reader.read()[path] == reader.read()[path] == Missing(path, Absence.GONE, "no such cgroup")
    assert reader.open_descriptors == 0
    reader.close()


def test_pods_come_and_go(tree: Tree) -> None:
    """Twenty pods with a container each, ten replaced in every round: found at once, read whole, nothing left open."""
    reader = CgroupReader(ROOT)
    seen = Discovery.watching(ROOT, tree.layout)
    assert seen.fileno() is not None
    alive = [f"p{number}" for number in range(20)]
    for uid in alive:
        tree.mkdir(f"burstable/pod{uid}/c{uid}")
    opened = set()
    for turn in range(5):
        found = seen.pods()
        assert set(found) == set(alive) and all(set(pod.containers) == {f"c{uid}"} for uid, pod in found.items())
        roster = {pod.path: Role.POD for pod in found.values()}
        roster |= {path: Role.CONTAINER for pod in found.values() for path in pod.containers.values()}
        reader.place(roster)
        read = reader.read()
        assert set(read) == set(roster) and all(isinstance(sample, CgroupSample) for sample in read.values())
        opened.add(reader.open_descriptors)
        for uid in alive[:10]:
            tree.rmdir(f"burstable/pod{uid}")
        lost = [sample for sample in reader.read().values() if isinstance(sample, Missing)]
        assert len(lost) == 20 and {sample.absence for sample in lost} == {Absence.GONE}
        alive = alive[10:] + [f"q{turn}-{number}" for number in range(10)]
        for uid in alive[10:]:
            tree.mkdir(f"burstable/pod{uid}/c{uid}")
    assert len(opened) == 1
    reader.close()
    seen.close()
    assert reader.open_descriptors == 0


def test_the_kernel_keeps_what_the_executor_writes(tree: Tree, tmp_path: Path) -> None:
    """A refused value is an outcome that names the file; restore brings -1 and 1024 back."""
    executor = KnobExecutor(ROOT, StateFile(tmp_path / "agent.json"))
    knobs = RootKnobs.of(tree.layout)
    assert executor.read(knobs.quota) == -1
    assert executor.apply((write(tree, 50_000, -1),), 0)[0].error == "" and executor.read(knobs.quota) == 50_000
    refused = executor.apply((write(tree, 999, 50_000),), 0)[0]
    assert "cpu.cfs_quota_us: Invalid argument" in refused.error and executor.read(knobs.quota) == 50_000
    assert executor.restore().changed == 1 and executor.read(knobs.quota) == -1


def test_the_brake_cuts_a_real_surge(tree: Tree, tmp_path: Path) -> None:
    """A process that starts to spin among online pods lowers the quota file without any tick."""
    executor = KnobExecutor(ROOT, StateFile(tmp_path / "agent.json"))
    knobs = RootKnobs.of(tree.layout)
    full = (os.cpu_count() or 1) * 100_000
    executor.apply((write(tree, full, -1),), 0)
    woken = threading.Event()
    brake = BrakeThread(ROOT, tree.layout, 0.1, executor.lower, woken.set)
    brake.arm(Watch(BrakePlan(knobs.quota, (Term("capacity", full),), full, 2000, full, 10_000)))
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
