"""The brake's thread on files of its own: it cuts, kills, records, wakes the tick, and survives unreadable counters."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent.core.limit.brake import BrakePlan, decision
from agent.core.limit.watch import LastResort, Mechanism, PreparedVictim, WakeCause, Watch
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.edge.brake import BrakeThread
from agent.last_resort_kill import LastResortKill
from model.decision import Term

KNOB = Knob("/kubepods/besteffort", "cpu", "cpu.cfs_quota_us")
NARROW = ((Knob("/kubepods/besteffort/poda", "cpu", "cpu.cfs_quota_us"), 100_000),)
PLAN = BrakePlan(KNOB, (Term("capacity", 180_000),), 180_000, 2000, 140_000, 10_000, "", 70_000, NARROW)
WATCH = Watch(PLAN)


class FakeAlarms:
    """Rings with the given causes when a test says so."""

    unreadable = 0

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0)
        self.ringing: tuple[WakeCause, ...] = ()
        self.shown: tuple[WakeCause, ...] = ()
        self.placed: list[Watch] = []
        self.heard = 0
        self.sticky = False
        self.closed = False

    def ring(self, *causes: WakeCause) -> None:
        self.ringing = causes
        os.eventfd_write(self.descriptor, 1)

    def place(self, watch: Watch, epoll: select.epoll) -> None:
        if not self.placed:
            epoll.register(self.descriptor, select.EPOLLIN)
        self.placed.append(watch)

    def take(self, ready: Mapping[int, int]) -> tuple[WakeCause, ...]:
        if self.descriptor not in ready:
            return ()
        self.heard += 1
        if not self.sticky:
            os.eventfd_read(self.descriptor)
        return self.ringing

    def look(self, monotonic_seconds: float) -> tuple[WakeCause, ...]:
        seen, self.shown = self.shown, ()
        return seen

    def mechanisms(self) -> tuple[Mechanism, ...]:
        return (Mechanism("rings", len(self.placed)),)

    def close(self) -> None:
        self.closed = True
        os.close(self.descriptor)


class FakeMemory:
    """Short when a test says so."""

    unreadable = 0

    def __init__(self) -> None:
        self.left = 100

    def available(self) -> int | None:
        return self.left

    def kubepods_charge(self) -> int | None:
        return None

    def kubepods_page_cache(self) -> int | None:
        return None

    def held(self, cgroup: str) -> int | None:
        return None

    def close(self) -> None:
        pass


class FakeExecutioner:
    """Whoever it kills had one process, and is gone at once."""

    def __init__(self, killed: list[str]) -> None:
        self.killed = killed

    def __call__(self, cgroup: str) -> int:
        self.killed.append(cgroup)
        return 1

    def processes(self, cgroup: str) -> frozenset[int]:
        return frozenset()

    def prepare(self) -> None:
        pass

    def close(self) -> None:
        pass


class Rig:
    """Two counter files, and an executor that only remembers."""

    def __init__(self, root: Path, version: int = 1) -> None:
        self.tree = root / ("cpuacct" if version == 1 else "")
        self.version = version
        for group in ("kubepods", "kubepods/besteffort"):
            (self.tree / group).mkdir(parents=True, exist_ok=True)
            self.count(group, 0)
        self.lowered: list[int] = []
        self.narrowed: list[tuple[tuple[Knob, int], ...]] = []
        self.held: int | None = 140_000
        self.woken = threading.Event()
        self.alarms = FakeAlarms()
        self.memory = FakeMemory()
        self.killed: list[str] = []
        last_resort = LastResortKill(self.memory, FakeExecutioner(self.killed))
        layout = Layout("/kubepods", version)
        self.looked: list[Knob] = []
        self.brake = BrakeThread(
            root, layout, 0.02, self.lower, self.woken.set, (self.alarms,), last_resort, look=self.looked.append
        )

    def count(self, group: str, ns: int) -> None:
        v2 = f"usage_usec {ns // 1000}\nuser_usec 0\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"
        self.write(group, str(ns) if self.version == 1 else v2)

    def write(self, group: str, text: str) -> None:
        name = "cpuacct.usage" if self.version == 1 else "cpu.stat"
        (self.tree / group / name).write_text(text)

    def surge_until(self, condition: Callable[[], bool]) -> bool:
        """Online use grows without end; however late a sample is taken, some two of them show it."""
        used = 0

        def grows() -> bool:
            nonlocal used
            used += 10**12
            self.count("kubepods", used)
            return condition()

        return eventually(grows)

    def surge_until_woken(self) -> bool:
        return self.surge_until(self.woken.is_set)

    def lower(self, knob: Knob, value: int, narrow_first: tuple[tuple[Knob, int], ...] = ()) -> int | None:
        self.lowered.append(value)
        self.narrowed.append(narrow_first)
        return self.held


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not condition():
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("version", [1, 2])
def test_a_surge_is_cut_recorded_and_wakes_the_tick(tmp_path: Path, version: int) -> None:
    """Online use far above the plan, whatever the exact timing, is a cut to the floor; on both cgroup versions."""
    rig = Rig(tmp_path, version)
    rig.brake.arm(WATCH)
    rig.brake.start()
    try:
        assert rig.surge_until_woken()
        cut = rig.brake.drain()[0]
        assert (cut.plan, cut.previous_us, cut.value_us, rig.lowered[0]) == (PLAN, 140_000, 2000, 2000)
        # 180,000 us - online must be below the floor of 2,000 us.
        assert cut.online_us > 178_000 and decision(cut).value == 2000
        assert rig.brake.total >= 1 and rig.brake.drain() == () and rig.narrowed[0] == NARROW
        assert rig.brake.wakes[WakeCause.CPU_USE] >= 1 and rig.brake.fired[WakeCause.CPU_USE] >= 1
    finally:
        rig.brake.stop()


def test_it_goes_on_from_what_it_cut_to(rig: Rig) -> None:
    """One surge is one cut: the plan in force is the lowered one until the tick arms another."""
    rig.brake.arm(WATCH)
    rig.brake.start()
    try:
        assert rig.surge_until_woken()
        readings = []
        assert rig.surge_until(lambda: readings.append(rig.brake.total) or len(readings) > 20)
        assert rig.lowered == [2000]
        rig.brake.arm(WATCH)
        assert rig.surge_until(lambda: rig.brake.total == 2)
    finally:
        rig.brake.stop()


def test_what_the_executor_refused_is_no_cut(rig: Rig) -> None:
    """The kernel held less already, or took nothing: nothing to record, nobody to wake, and it tries again."""
    rig.held = None
    rig.brake.arm(WATCH)
    rig.brake.start()
    try:
        assert rig.surge_until(lambda: len(rig.lowered) > 2)
        assert rig.brake.drain() == () and rig.brake.total == 0 and not rig.woken.is_set()
    finally:
        rig.brake.stop()


def test_it_looks_whether_the_ceiling_stands(rig: Rig) -> None:
    """Each interval, whatever is used: who loosens it between two ticks is seen."""
    rig.brake.arm(WATCH)
    rig.brake.start()
    try:
        assert eventually(lambda: len(rig.looked) > 2)
        assert set(rig.looked) == {KNOB} and rig.lowered == []
    finally:
        rig.brake.stop()


def test_unarmed_it_does_nothing(rig: Rig) -> None:
    """Without a plan there is nothing to defend, however much is seen to be used."""
    rig.brake.start()
    looks = []
    try:
        assert rig.surge_until(lambda: looks.append(0) or len(looks) > 20)
        assert rig.lowered == [] and rig.brake.alive
        rig.brake.arm(WATCH)
        assert rig.surge_until(lambda: bool(rig.lowered))
    finally:
        rig.brake.stop()
    assert not rig.brake.alive


def test_unreadable_counters_are_counted_and_recovered_from(rig: Rig) -> None:
    """Garbage neither cuts nor ends the thread."""
    rig.write("kubepods", "garbage")
    rig.brake.arm(WATCH)
    rig.brake.start()
    try:
        assert eventually(lambda: rig.brake.unreadable > 2) and rig.lowered == []
        assert rig.surge_until_woken()
    finally:
        rig.brake.stop()


def test_waiting_pods_are_a_cut_at_once(rig: Rig) -> None:
    """To what the tick prepared, once; a second alarm has nothing lower to write and wakes nobody."""
    rig.brake.arm(WATCH)
    rig.brake.start()
    try:
        rig.alarms.ring(WakeCause.CPU_PRESSURE)
        assert rig.woken.wait(10)
        (cut,) = rig.brake.drain()
        assert (cut.value_us, cut.suffering, decision(cut).value) == (70_000, True, 70_000)
        rig.alarms.ring(WakeCause.CPU_PRESSURE)
        assert eventually(lambda: rig.alarms.heard == 2)
    finally:
        rig.brake.stop()
    assert rig.lowered == [70_000] and rig.brake.fired[WakeCause.CPU_PRESSURE] == 2
    assert rig.brake.wakes[WakeCause.CPU_PRESSURE] == 1


@pytest.mark.parametrize("cause", [WakeCause.MEMORY_MARK, WakeCause.MEMORY_PRESSURE])
def test_memory_wakes_the_tick(rig: Rig, cause: WakeCause) -> None:
    """With nothing else to do about it."""
    rig.brake.arm(Watch())
    rig.brake.start()
    try:
        rig.alarms.ring(cause)
        assert rig.woken.wait(10)
    finally:
        rig.brake.stop()
    assert rig.brake.wakes[cause] == 1 and rig.brake.drain() == () and rig.killed == []


@pytest.mark.parametrize("cause", [WakeCause.MEMORY_LEVEL, WakeCause.MEMORY_REFAULTS])
def test_what_only_looking_tells_wakes_the_tick(rig: Rig, cause: WakeCause) -> None:
    """Without any descriptor that the kernel makes ready."""
    rig.alarms.shown = (cause,)
    rig.brake.arm(WATCH)
    rig.brake.start()
    try:
        assert rig.woken.wait(10)
    finally:
        rig.brake.stop()
    assert rig.brake.wakes[cause] == rig.brake.fired[cause] == 1 and rig.alarms.heard == 0 and rig.killed == []


def test_a_storm_of_alarms_is_heard_once_an_interval(rig: Rig) -> None:
    """However often the kernel tells, the thread is not kept busy by it."""
    rig.alarms.sticky = True
    rig.alarms.ring(WakeCause.MEMORY_MARK)
    began = time.monotonic()
    rig.brake.arm(WATCH)
    rig.brake.start()
    try:
        assert eventually(lambda: rig.alarms.heard > 5)
    finally:
        rig.brake.stop()
    assert rig.alarms.heard <= (time.monotonic() - began) / 0.02 + 1


def test_short_memory_kills_one_prepared_victim_and_waits(rig: Rig) -> None:
    """The second is spared while the first one's memory is still being given back."""
    victims = tuple(PreparedVictim(f"u{n}", "default", f"job{n}", f"/be/pod{n}", 10**12) for n in range(2))
    rig.memory.left = 10
    rig.brake.arm(Watch(last_resort=LastResort(50, None, None, victims)))
    rig.brake.start()
    try:
        assert rig.woken.wait(10)
        (kill,) = rig.brake.kills()
        assert (kill.victim, kill.available_bytes, kill.processes) == (victims[0], 10, 1)
        rig.alarms.ring(WakeCause.MEMORY_MARK)
        assert eventually(lambda: rig.alarms.heard == 1)
    finally:
        rig.brake.stop()
    assert rig.killed == ["/be/pod0"] and rig.brake.kills() == () and rig.brake.total_kills == 1


def test_what_works_is_told_in_words(rig: Rig) -> None:
    """Counters while they can be read, available memory while there is something to kill, and what alarms say."""
    rig.brake.start()
    try:
        assert eventually(lambda: rig.brake.mechanisms == ("CPU counters each 20 ms", "rings on 0 cgroups"))
        watch = Watch(last_resort=LastResort(0, None, None, ()))
        rig.brake.arm(watch)
        told = ("CPU counters each 20 ms", "available memory each 20 ms", "rings on 1 cgroup")
        assert eventually(lambda: rig.brake.mechanisms == told) and rig.alarms.placed == [watch]
        rig.write("kubepods", "garbage")
        assert eventually(lambda: rig.brake.mechanisms == told[1:])
    finally:
        rig.brake.stop()


def test_a_vanished_class_leaves_no_descriptor_open(rig: Rig) -> None:
    """Best effort's counter is gone for many intervals, the one of all pods is not."""
    rig.brake.start()
    try:
        assert eventually(lambda: bool(rig.brake.mechanisms))
        (rig.tree / "kubepods/besteffort/cpuacct.usage").unlink()
        rig.write("kubepods", "garbage")
        assert eventually(lambda: rig.brake.unreadable > 1)
        before = len(list(Path("/proc/self/fd").iterdir()))
        seen = rig.brake.unreadable
        assert eventually(lambda: rig.brake.unreadable > seen + 10)
        assert len(list(Path("/proc/self/fd").iterdir())) == before
    finally:
        rig.brake.stop()
    assert rig.alarms.closed


def test_stopping_twice_or_before_the_start_is_fine(tmp_path: Path) -> None:
    """Everything is closed once."""
    never = Rig(tmp_path / "never")
    never.brake.stop()
    never.brake.stop()
    assert never.alarms.closed
