"""Waking up early and the last resort against this host's own cgroup v1, below a throw-away prefix."""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.limit.brake import BrakePlan
from agent.core.limit.watch import LastResort, MemoryMark, PreparedVictim, WakeCause, Watch
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.edge.brake import BrakeThread
from agent.edge.killer import Killer
from agent.edge.memorylevels import MemoryLevels
from agent.edge.memorymarks import Thresholds, memory_alarms
from agent.edge.stalltriggers import StallTriggers
from agent.kill_thread import KillThread
from agent.last_resort_kill import LastResortKill
from cgroup_fixtures.live import MOUNT, LiveTree
from model.decision import Term

MIB = 1 << 20
PROC = Path("/proc")
SLEEP = "import time; time.sleep(600)"
HOLD = f"held = bytearray(b'x' * {48 * MIB})\n{SLEEP}"
GROW = "import time\nheld = []\nwhile True: held.append(b'x' * (2 << 20)); time.sleep(0.02)"
SPIN = "while True: pass"
SPIN_TOGETHER = f"import os; os.sched_setaffinity(0, {{0}})\n{SPIN}"

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(
        os.geteuid() != 0 or not os.access(MOUNT / "memory" / "cgroup.event_control", os.W_OK),
        reason="needs root and writable cgroup v1; run as root on a v1 host",
    ),
]


class Node:
    """kubepods with two best-effort pods and a burstable one, and a brake with all its sources."""

    def __init__(self) -> None:
        self.tree = LiveTree(f"sublet-test-{secrets.token_hex(4)}")
        self.layout = Layout(f"/{self.tree.top}/kubepods")
        self.jobs = [f"{self.layout.best_effort}/pod{name}" for name in ("a", "b")]
        self.web = f"{self.layout.burstable}/podc"
        for cgroup in (*self.jobs, self.web):
            self.tree.make(cgroup)
        self.woken = threading.Event()
        self.lowered: list[int] = []
        layout = self.layout
        self.triggers, self.marks = StallTriggers(MOUNT, layout, PROC), memory_alarms(MOUNT, layout)
        kill = KillThread(Killer(MOUNT, layout))
        # Until it tells how many it reached.
        kill.moment_seconds = 60.0
        last_resort = LastResortKill(MemoryLevels(MOUNT, layout, PROC, Path("/sys")), kill)
        self.brake = BrakeThread(
            MOUNT, layout, 0.1, self.lower, self.woken.set, (self.triggers, self.marks), last_resort
        )

    def lower(self, knob: Knob, value: int, narrow_first: tuple[tuple[Knob, int], ...] = ()) -> int | None:
        self.lowered.append(value)
        return 200_000

    def victim(self, cgroup: str) -> PreparedVictim:
        return PreparedVictim(cgroup, "default", cgroup[-1], cgroup, 48 * MIB)

    def level(self, cgroup: str) -> int:
        return int((self.tree.folder(cgroup, "memory") / "memory.usage_in_bytes").read_text())

    def close(self) -> None:
        self.brake.stop()
        self.tree.remove()


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.close()


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not condition():
        time.sleep(0.02)
    return condition()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def test_a_child_that_passes_the_mark_wakes_the_tick(node: Node) -> None:
    """The kernel says so; nobody polls the level."""
    node.brake.arm(Watch(memory=(MemoryMark(node.layout.best_effort, 32 * MIB),)))
    node.brake.start()
    assert eventually(lambda: "memory thresholds (eventfd) on 1 cgroup" in node.brake.mechanisms)
    assert not node.woken.is_set()
    node.tree.run(node.jobs[0], HOLD)
    assert node.woken.wait(20) and node.brake.wakes[WakeCause.MEMORY_MARK] == 1 and node.brake.unreadable == 0


class Marks:
    """Marks without a thread, and what they told so far."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.now = 0.0
        self.marks = Thresholds(MOUNT, lambda: self.now)
        self.told: list[WakeCause] = []

    def place(self, cgroup: str, mib: int) -> None:
        """Ten seconds after the last time."""
        self.now += 10
        self.marks.place(Watch(memory=(MemoryMark(cgroup, mib * MIB),)), self.epoll)

    def tell(self) -> list[WakeCause]:
        self.told.extend(self.marks.take(dict(self.epoll.poll(0))))
        return self.told

    def close(self) -> None:
        self.marks.close()
        self.epoll.close()


@pytest.fixture
def marks() -> Iterator[Marks]:
    made = Marks()
    yield made
    made.close()


def test_only_the_way_up_counts(node: Node, marks: Marks) -> None:
    """The kernel tells of the way down too."""
    best_effort = node.layout.best_effort
    marks.place(best_effort, 32)
    process = node.tree.run(node.jobs[0], HOLD)
    assert eventually(lambda: len(marks.tell()) == 1)
    assert eventually(lambda: node.level(best_effort) >= 48 * MIB)
    told = len(marks.tell())
    node.tree.end(process)
    assert eventually(lambda: node.level(best_effort) < 16 * MIB)
    assert len(marks.tell()) == told and marks.marks.mechanisms()[0].cgroups == 1


def test_a_mark_that_is_passed_when_it_is_set_rings_at_once(node: Node, marks: Marks) -> None:
    """And one that hardly moves is not set again, so it does not ring again."""
    node.tree.run(node.jobs[0], HOLD)
    assert eventually(lambda: node.level(node.layout.best_effort) >= 48 * MIB)
    for mib, rings in ((32, 1), (33, 1), (14, 2)):
        marks.place(node.layout.best_effort, mib)
        assert marks.tell() == [WakeCause.MEMORY_MARK] * rings


def test_the_last_resort_kills_a_prepared_victim_and_nobody_else(node: Node) -> None:
    """Memory is absurdly short; the second best-effort pod and the online one live on."""
    victim, other, online = (node.tree.run(cgroup, HOLD) for cgroup in (*node.jobs, node.web))
    node.brake.arm(Watch(last_resort=LastResort(1 << 60, None, None, (node.victim(node.jobs[0]),))))
    node.brake.start()
    assert node.woken.wait(20) and eventually(lambda: ended(victim))
    (kill,) = node.brake.kills()
    assert (kill.victim.cgroup, kill.processes) == (node.jobs[0], 1) and 0 < kill.available_bytes < 1 << 60
    seen = node.brake.fired[WakeCause.LAST_RESORT]
    time.sleep(0.3)
    assert not ended(other) and not ended(online) and node.brake.kills() == ()
    assert node.brake.fired[WakeCause.LAST_RESORT] == seen == 1


def test_kubepods_own_limit_is_short_memory_too(node: Node) -> None:
    """Page cache that can be dropped does not count; what a process holds does."""
    resort = LastResort(0, 32 * MIB, 64 * MIB, (node.victim(node.jobs[0]),))
    node.brake.arm(Watch(last_resort=resort))
    node.brake.start()
    assert eventually(lambda: "available memory each 100 ms" in node.brake.mechanisms)
    assert node.brake.kills() == ()
    victim = node.tree.run(node.jobs[0], HOLD)
    assert eventually(lambda: ended(victim))
    (kill,) = node.brake.kills()
    assert kill.available_bytes < 32 * MIB


def test_an_online_pod_is_spared_the_kernels_oom_killer(node: Node) -> None:
    """A hungry best-effort pod would fill all pods' limit: it is ended before that, and not without the last resort."""
    limit = 192 * MIB
    (node.tree.folder(node.layout.root, "memory") / "memory.limit_in_bytes").write_text(str(limit))
    online = node.tree.run(node.web, HOLD)
    assert eventually(lambda: node.level(node.web) > 48 * MIB)
    node.brake.arm(Watch(last_resort=LastResort(0, 64 * MIB, limit, (node.victim(node.jobs[0]),))))
    node.brake.start()
    hungry = node.tree.run(node.jobs[0], GROW)
    assert eventually(lambda: ended(hungry)) and len(node.brake.kills()) == 1
    assert kernel_kills(node) == 0 and not ended(online)
    node.brake.arm(Watch())
    unwatched = node.tree.run(node.jobs[1], GROW)
    assert eventually(lambda: ended(unwatched) or ended(online))
    assert kernel_kills(node) > 0


def kernel_kills(node: Node) -> int:
    """Processes of all pods that the kernel killed for want of memory."""
    files = (node.tree.folder(cgroup, "memory") / "memory.oom_control" for cgroup in (*node.jobs, node.web))
    return sum(int(file.read_text().rpartition("oom_kill ")[2]) for file in files)


def test_waiting_for_cpu_is_told_through_the_unified_tree(node: Node) -> None:
    """Two processes on one CPU: the online cgroup waits, and what was prepared is written."""
    if not (MOUNT / "unified" / node.web.lstrip("/") / "cpu.pressure").exists():
        pytest.skip("needs pressure files in a unified mount beside v1; boot with psi=1")
    plan = BrakePlan(RootKnobs.of(node.layout).quota, (Term("x", 10**9),), 10**9, 2000, 200_000, 10**8, "", 70_000)
    node.brake.arm(Watch(plan, online=(node.layout.burstable, f"{node.layout.burstable}/podgone")))
    node.brake.start()
    assert eventually(lambda: any(words.startswith("PSI triggers") for words in node.brake.mechanisms))
    told = [words for words in node.brake.mechanisms if words.startswith("PSI triggers")]
    # Only with CAP_SYS_RESOURCE does the kernel watch so closely.
    assert told in (["PSI triggers 500 ms on 1 cgroup"], ["PSI triggers 2 s on 1 cgroup"])
    for cgroup in (*node.jobs, node.web):
        node.tree.run(cgroup, SPIN_TOGETHER)
    # The node's memory may wake the tick too; a cut is of this alone.
    assert eventually(lambda: bool(node.lowered)) and node.woken.wait(20)
    time.sleep(0.3)
    (cut,) = node.brake.drain()
    assert cut.suffering and node.lowered == [70_000]


def test_cgroups_that_vanish_leave_nothing_behind(node: Node) -> None:
    """Triggers, marks and counters of a removed tree are closed, the thread lives, and it all comes back."""
    online, marks = (node.layout.burstable,), (MemoryMark(node.layout.best_effort, 1 << 30),)
    node.brake.start()
    before = descriptors()

    def told() -> tuple[str, ...]:
        node.brake.arm(Watch(online=online, memory=marks))
        return node.brake.mechanisms

    assert eventually(lambda: "memory thresholds (eventfd) on 1 cgroup" in told())
    complete, held = told(), descriptors()
    assert held > before
    node.tree.remove()
    assert eventually(lambda: not any("cgroup" in words or "counters" in words for words in told()))
    assert node.brake.alive and descriptors() < held
    node.tree.make(node.jobs[0])
    node.tree.make(node.web)
    assert eventually(lambda: told() == complete) and descriptors() == held
    node.brake.arm(Watch())
    assert eventually(lambda: not any("cgroup" in words for words in node.brake.mechanisms))
