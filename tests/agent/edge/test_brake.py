"""The brake's thread on real files: it cuts, records, wakes the tick, and survives unreadable counters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.brake import BrakePlan
from agent.core.layout import KubepodsLayout
from agent.core.observation import Knob
from agent.edge.brake import BrakeThread
from model.decision import Term

KNOB = Knob("/kubepods/besteffort", "cpu", "cpu.cfs_quota_us")
PLAN = BrakePlan(KNOB, (Term("capacity", 180_000),), 180_000, 2000, 140_000, 10_000)


class Rig:
    """Two counter files, and an executor that only remembers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for group in ("kubepods", "kubepods/besteffort"):
            (root / "cpuacct" / group).mkdir(parents=True, exist_ok=True)
            self.write(group, "0")
        self.lowered: list[int] = []
        self.woken = threading.Event()
        self.brake = BrakeThread(root, KubepodsLayout(), 0.02, self.lower, self.woken.set)

    def write(self, group: str, text: str) -> None:
        (self.root / "cpuacct" / group / "cpuacct.usage").write_text(text)

    def surge_until_woken(self) -> bool:
        """Online use grows without end; however late a sample is taken, some two of them show it."""
        used = 0

        def grows() -> bool:
            nonlocal used
            used += 10**12
            self.write("kubepods", str(used))
            return self.woken.is_set()

        return eventually(grows)

    def lower(self, knob: Knob, value: int) -> int | None:
        self.lowered.append(value)
        return 140_000


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not condition():
        time.sleep(0.01)
    return condition()


def test_a_surge_is_cut_recorded_and_wakes_the_tick(rig: Rig) -> None:
    """Online use far above the plan, whatever the exact timing, is a cut to the floor."""
    rig.brake.arm(PLAN)
    rig.brake.start()
    try:
        assert rig.surge_until_woken()
        cut = rig.brake.drain()[0]
        assert (cut.previous_us, cut.value_us, rig.lowered[0]) == (140_000, 2000, 2000)
        assert rig.brake.total >= 1 and rig.brake.drain() == ()
    finally:
        rig.brake.stop()


def test_unarmed_it_does_nothing(rig: Rig) -> None:
    """Without a plan there is nothing to defend."""
    rig.brake.start()
    rig.write("kubepods", str(10**12))
    time.sleep(0.2)
    rig.brake.stop()
    assert rig.lowered == []


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
