"""Waking up early and the last resort on real cgroup v2, with CAP_SYS_RESOURCE."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.limit.brake import BrakePlan
from agent.core.limit.watch import LastResort, PreparedVictim, WakeCause, Watch
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.edge.brake import BrakeThread
from agent.edge.killer import Killer
from agent.edge.memorylevels import MemoryLevels
from agent.edge.memorymarks import memory_alarms
from agent.edge.stalltriggers import StallTriggers
from agent.kill_thread import KillThread
from agent.last_resort_kill import LastResortKill
from cgroup_fixtures.live import MOUNT
from model.decision import Term
from tests.guest.inside.live_node import HOLD, MIB, SLEEP, SPIN, eventually

PROC = Path("/proc")
SPIN_TOGETHER = f"import os; os.sched_setaffinity(0, {{0}})\n{SPIN}"
PREPARED_US = 70_000
HEADLESS = (
    "import ctypes, threading, time\n"
    "threading.Thread(target=time.sleep, args=[600]).start()\n"
    "ctypes.CDLL(None).syscall(60, 0)"
)
"""Its first thread ends, by exit(2) of x86_64."""


class Rig:
    """A brake with all its senses over the pods' tree; its cuts are written to cpu.max."""

    def __init__(self, pods: Any) -> None:
        self.pods = pods
        self.layout = layout = Layout(pods.root, 2)
        self.woken = threading.Event()
        alarms = (StallTriggers(MOUNT, layout, PROC), memory_alarms(MOUNT, layout))
        kill = KillThread(Killer(MOUNT, layout))
        # Until it tells how many it reached.
        kill.moment_seconds = 60.0
        last_resort = LastResortKill(MemoryLevels(MOUNT, layout, PROC, Path("/sys")), kill)
        self.brake = BrakeThread(MOUNT, layout, 0.1, self.lower, self.woken.set, alarms, last_resort)

    def lower(self, knob: Knob, value: int, narrow_first: tuple[tuple[Knob, int], ...] = ()) -> int | None:
        self.pods.write(knob.cgroup, knob.file, f"{value} 100000")
        return -1

    def start(self, watch: Watch, *wanted: str) -> None:
        """Until every wanted mechanism works."""
        self.brake.arm(watch)
        self.brake.start()
        assert eventually(lambda: set(wanted) <= set(self.brake.mechanisms)), self.brake.mechanisms

    def watch(self) -> Watch:
        """Counters that would never call for a cut, and one prepared for pods that wait."""
        quota = RootKnobs.of(self.layout).quota
        plan = BrakePlan(quota, (Term("x", 10**9),), 10**9, 2000, 200_000, 10**8, "", PREPARED_US)
        return Watch(plan, online=(self.layout.burstable,))


@pytest.fixture
def rig(pods: Any) -> Iterator[Rig]:
    made = Rig(pods)
    yield made
    made.brake.stop()


def gone(process: Any) -> Callable[[], bool]:
    return lambda: process.poll() is not None


def test_waiting_pods_are_a_cut_at_once(rig: Rig) -> None:
    """Online and best effort share one CPU at equal weight: the kernel tells within its 500 ms window."""
    rig.start(rig.watch(), "PSI triggers 500 ms on 1 cgroup", "PSI trigger 500 ms on the node's memory")
    for cgroup in (rig.pods.best_effort, rig.pods.burstable):
        rig.pods.tree.run(cgroup, SPIN_TOGETHER)
    assert rig.woken.wait(60)
    cut = rig.brake.drain()[0]
    assert (cut.suffering, cut.value_us) == (True, PREPARED_US)
    assert rig.pods.read(rig.layout.best_effort, "cpu.max") == f"{PREPARED_US} 100000\n".encode()


def test_a_trigger_ends_with_its_cgroup_and_comes_back(rig: Rig) -> None:
    """The thread lives; the new cgroup of that name is watched again."""
    rig.start(rig.watch(), "PSI triggers 500 ms on 1 cgroup")
    for levels in range(3):
        rig.pods.tree.folder(rig.pods.burstable.rsplit("/", levels)[0] if levels else rig.pods.burstable).rmdir()

    def told() -> tuple[str, ...]:
        rig.brake.arm(rig.watch())
        return rig.brake.mechanisms

    assert eventually(lambda: not any(words.startswith("PSI triggers") for words in told()))
    assert rig.brake.alive and "PSI trigger 500 ms on the node's memory" in told()
    rig.pods.tree.make(rig.pods.burstable)
    assert eventually(lambda: "PSI triggers 500 ms on 1 cgroup" in told())


def test_memory_high_wakes_the_tick(rig: Rig) -> None:
    """Best effort grows against the limit of its root; a container that meets its own wakes nobody."""
    rig.start(Watch(), "CPU counters each 100 ms", "memory.events")
    rig.pods.write(rig.pods.best_effort, "memory.max", str(16 * MIB))
    assert rig.pods.tree.run(rig.pods.best_effort, HOLD).wait(60) < 0
    time.sleep(0.5)
    assert rig.brake.fired[WakeCause.MEMORY_MARK] == 0
    rig.pods.write(rig.pods.best_effort, "memory.max", "max")
    rig.pods.write(rig.layout.best_effort, "memory.high", str(16 * MIB))
    rig.pods.tree.run(rig.pods.best_effort, HOLD)
    assert rig.woken.wait(60) and rig.brake.wakes[WakeCause.MEMORY_MARK] >= 1


def test_the_last_resort_kills_by_the_kernels_own_means(rig: Rig) -> None:
    """The whole prepared cgroup by cgroup.kill; an online pod and another best-effort one live on."""
    other = rig.pods.best_effort.replace("pod2222", "pod3333")
    rig.pods.tree.make(other)
    online, spared = (rig.pods.tree.run(cgroup, SLEEP) for cgroup in (rig.pods.burstable, other))
    victims = [rig.pods.tree.run(rig.pods.best_effort, SLEEP) for _ in range(2)]
    pod = rig.pods.best_effort.rsplit("/", 1)[0]
    prepared = PreparedVictim("2222", "default", "job", pod, 32 * MIB)
    rig.start(Watch(last_resort=LastResort(1 << 60, None, None, (prepared,))))
    assert rig.woken.wait(60) and all(eventually(gone(victim)) for victim in victims)
    (kill,) = rig.brake.kills()
    assert (kill.victim, kill.processes) == (prepared, 2) and 0 < kill.available_bytes < 1 << 60
    assert online.poll() is None and spared.poll() is None


def test_a_process_whose_first_thread_has_ended_is_killed(rig: Rig) -> None:
    """The kernel's own kill does not reach it on Linux 6.1 and 6.18, and does on 7.3; no program needs a right for that."""
    headless = rig.pods.tree.run(rig.pods.best_effort, HEADLESS)
    stat = PROC / str(headless.pid) / "stat"
    assert eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
    assert Killer(MOUNT, rig.layout)(rig.pods.best_effort) == 1 and eventually(gone(headless))


def test_kubepods_own_limit_is_short_memory_too(rig: Rig) -> None:
    """What a process holds leaves too little below the limit."""
    prepared = PreparedVictim("2222", "default", "job", rig.pods.best_effort.rsplit("/", 1)[0], 32 * MIB)
    rig.start(Watch(last_resort=LastResort(0, 24 * MIB, 48 * MIB, (prepared,))), "available memory each 100 ms")
    assert rig.brake.kills() == ()
    victim = rig.pods.tree.run(rig.pods.best_effort, HOLD)
    assert eventually(gone(victim))
    (kill,) = rig.brake.kills()
    assert kill.available_bytes < 24 * MIB and rig.brake.unreadable == 0
