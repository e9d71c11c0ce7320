"""Reader, executor and brake against this host's own cgroup v1, below a throw-away prefix."""

from __future__ import annotations

import os
import secrets
import shutil
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
from agent.core.observe.observation import Absence, CgroupSample, CpuThrottling, MemoryEvents, Missing, NodeSample
from agent.core.observe.parse import meminfo
from agent.edge.brake import BrakeThread
from agent.edge.cgroupfs import CgroupReader
from agent.edge.discovery import Discovery
from agent.edge.executor import KnobExecutor
from agent.edge.host import HostReader
from agent.files.statefile import StateFile
from model.decision import Decision, Term, Unit
from model.reason import Reason
from tests.agent.kernel.v1_tree import removed

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "memory")
SPIN = "held = b'x' * (32 << 20)\nwhile True: pass"
POD = "burstable/poda"
SHARED = Path("/dev/shm")
LINKS = 100_000
WATCHES = 20_000
WATCHED = """
import ctypes, os, sys
input()
os.chdir(sys.argv[1])
kernel, names = ctypes.CDLL(None), [str(number) for number in range(int(sys.argv[2]))]
watching = kernel.inotify_init1(0)
for name in names:
    os.close(os.open(name, os.O_CREAT))
print(all(kernel.inotify_add_watch(watching, name.encode(), 2) > 0 for name in names), flush=True)
input()
"""
ALONE, APART = 32_768, 47
"""Pages, each so many bits of its offset from the next: five nodes of its own, at least."""
GIVEN_UP_BYTES = 256 << 20
GIVEN_UP = """
import ctypes, mmap, sys
input()
kernel, size = ctypes.CDLL(None), int(sys.argv[1])
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory.write(bytes([1]) * size)
answer = kernel.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), 8)
ctypes.memset(start, 2, size)
print(answer, flush=True)
input()
"""
"""Writes memory, gives it up, writes it again."""

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


def test_memory_that_was_given_up_and_written_again_is_in_use(tree: Tree) -> None:
    """The kernel has it among the file pages, and as available, until it wants it (MADV_FREE)."""
    path = f"{tree.layout.root}/{POD}"
    tree.mkdir(POD)
    reader = CgroupReader(ROOT)
    reader.place({path: Role.POD})
    process = subprocess.Popen(
        [sys.executable, "-c", GIVEN_UP, str(GIVEN_UP_BYTES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    tree.processes.append(process)
    for controller in CONTROLLERS:
        (ROOT / controller / path.lstrip("/") / "cgroup.procs").write_text(str(process.pid))
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"0\n", "MADV_FREE"

    def listed_as_file() -> int:
        text = (ROOT / "memory" / path.lstrip("/") / "memory.stat").read_text()
        return int(text.split("total_inactive_file ")[1].split()[0])

    assert eventually(lambda: listed_as_file() >= GIVEN_UP_BYTES * 9 // 10)
    assert eventually(lambda: memory_bytes(reader.read()[path]) >= GIVEN_UP_BYTES)
    sample = reader.read()[path]
    assert isinstance(sample, CgroupSample) and sample.page_cache_bytes < GIVEN_UP_BYTES // 10

    def node_bytes() -> tuple[int, int]:
        text = Path("/proc/meminfo").read_bytes()
        told = int(text.split(b"MemAvailable:")[1].split()[0]) * 1024
        return told, meminfo(text)[1]

    # As many bytes of locked pages of files, which the kernel counts with it, would hide them; this machine has few.
    assert eventually(lambda: node_bytes()[0] - node_bytes()[1] >= GIVEN_UP_BYTES // 2)
    reader.close()


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs a tmpfs; run where /dev/shm is mounted")
def test_names_of_files_in_memory_cannot_be_dropped() -> None:
    """Each holds 700 bytes that the kernel counts as available: hard links take no inode, and no size of the tmpfs."""
    folder, reader = SHARED / f"sublet-test-{secrets.token_hex(4)}", HostReader(Path("/proc"))
    folder.mkdir()
    try:
        before = reader.sample()
        (folder / "file").touch()
        for number in range(LINKS):
            os.link(folder / "file", folder / f"{number:0250d}")
        after = reader.sample()
        assert isinstance(before, NodeSample) and isinstance(after, NodeSample)
        # Other programs of this machine open and close files meanwhile.
        assert after.pinned_bytes - before.pinned_bytes > LINKS * 600
    finally:
        shutil.rmtree(folder)
        reader.close()


def test_files_that_are_watched_are_kept_without_their_names(tree: Tree, tmp_path: Path) -> None:
    """On a disk a file keeps some 1,100 bytes, which the kernel counts as available, for as long as somebody watches
    it (inotify): its name goes once the kernel wants memory, here that of a pod at its limit."""
    tree.mkdir(POD)
    group, reader = ROOT / "memory" / tree.layout.root.lstrip("/") / POD, HostReader(Path("/proc"))
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHED, str(tmp_path), str(WATCHES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    tree.processes.append(process)
    (group / "cgroup.procs").write_text(str(process.pid))
    before = reader.sample()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"True\n", "inotify_add_watch"

    def grown() -> int:
        (group / "memory.force_empty").write_text("0")
        after = reader.sample()
        assert isinstance(before, NodeSample) and isinstance(after, NodeSample)
        return after.pinned_bytes - before.pinned_bytes

    assert eventually(lambda: grown() > WATCHES * 1000)
    reader.close()


def test_nodes_by_which_pages_of_files_in_memory_are_found_cannot_be_dropped() -> None:
    """A page that stands alone in a large file has up to nine, of 576 bytes, which the kernel counts as available."""
    reader, file = HostReader(Path("/proc"), sys=Path("/sys")), os.memfd_create("sublet-test")
    try:
        os.ftruncate(file, 1 << 62)
        before = reader.sample()
        for number in range(ALONE):
            os.pwrite(file, b"x", number << APART)
        after = reader.sample()
        assert isinstance(before, NodeSample) and isinstance(after, NodeSample)
        assert after.pinned_bytes - before.pinned_bytes > ALONE * 5 * 550
    finally:
        os.close(file)
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
        # Of pods at once, of containers within half a round.
        passes = [reader.read() for _ in range(5)]
        gone = [[found for found in samples.values() if isinstance(found, Missing)] for samples in passes]
        assert len(gone[0]) >= 10 and len(gone[-1]) == 20
        assert {found.absence for found in gone[-1]} == {Absence.GONE}
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
