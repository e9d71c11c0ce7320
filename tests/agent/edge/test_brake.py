"""The brake's thread on real files: it cuts, records, wakes the tick, and survives unreadable counters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.brake import BrakePlan, decision
from agent.core.layout import Layout
from agent.core.observation import Knob
from agent.edge.brake import BrakeThread
from model.decision import Term

KNOB = Knob("/kubepods/besteffort", "cpu", "cpu.cfs_quota_us")
PLAN = BrakePlan(KNOB, (Term("capacity", 180_000),), 180_000, 2000, 140_000, 10_000)


class Rig:
    """Two counter files, and an executor that only remembers."""

    def __init__(self, root: Path, version: int = 1) -> None:
        self.tree = root / ("cpuacct" if version == 1 else "")
        self.version = version
        for group in ("kubepods", "kubepods/besteffort"):
            (self.tree / group).mkdir(parents=True, exist_ok=True)
            self.count(group, 0)
        self.lowered: list[int] = []
        self.held: int | None = 140_000
        self.woken = threading.Event()
        self.brake = BrakeThread(root, Layout("/kubepods", version), 0.02, self.lower, self.woken.set)

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

    def lower(self, knob: Knob, value: int) -> int | None:
        self.lowered.append(value)
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
    rig.brake.arm(PLAN)
    rig.brake.start()
    try:
        assert rig.surge_until_woken()
        cut = rig.brake.drain()[0]
        assert (cut.plan, cut.previous_us, cut.value_us, rig.lowered[0]) == (PLAN, 140_000, 2000, 2000)
        # 180,000 us - online must be below the floor of 2,000 us.
        assert cut.online_us > 178_000 and decision(cut).value == 2000
        assert rig.brake.total >= 1 and rig.brake.drain() == ()
    finally:
        rig.brake.stop()


def test_it_goes_on_from_what_it_cut_to(rig: Rig) -> None:
    """One surge is one cut: the plan in force is the lowered one until the tick arms another."""
    rig.brake.arm(PLAN)
    rig.brake.start()
    try:
        assert rig.surge_until_woken()
        readings = []
        assert rig.surge_until(lambda: readings.append(rig.brake.total) or len(readings) > 20)
        assert rig.lowered == [2000]
        rig.brake.arm(PLAN)
        assert rig.surge_until(lambda: rig.brake.total == 2)
    finally:
        rig.brake.stop()


def test_what_the_executor_refused_is_no_cut(rig: Rig) -> None:
    """The kernel held less already, or took nothing: nothing to record, nobody to wake, and it tries again."""
    rig.held = None
    rig.brake.arm(PLAN)
    rig.brake.start()
    try:
        assert rig.surge_until(lambda: len(rig.lowered) > 2)
        assert rig.brake.drain() == () and rig.brake.total == 0 and not rig.woken.is_set()
    finally:
        rig.brake.stop()


def test_unarmed_it_does_nothing(rig: Rig) -> None:
    """Without a plan there is nothing to defend, however much is seen to be used."""
    rig.brake.start()
    looks = []
    try:
        assert rig.surge_until(lambda: looks.append(0) or len(looks) > 20)
        assert rig.lowered == [] and rig.brake.alive
        rig.brake.arm(PLAN)
        assert rig.surge_until(lambda: bool(rig.lowered))
    finally:
        rig.brake.stop()
    assert not rig.brake.alive


def test_unreadable_counters_are_counted_and_recovered_from(rig: Rig) -> None:
    """Garbage neither cuts nor ends the thread."""
    rig.write("kubepods", "garbage")
    rig.brake.arm(PLAN)
    rig.brake.start()
    try:
        assert eventually(lambda: rig.brake.unreadable > 2) and rig.lowered == []
        assert rig.surge_until_woken()
    finally:
        rig.brake.stop()
