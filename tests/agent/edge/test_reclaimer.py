"""Reclaim of single pods by files as cgroup v2 has them; what a real kernel does is tests/guest/inside/test_shrink.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.limit.shrink import PodLook, ReclaimAnswer, ReclaimOrder
from agent.core.observe.layout import Layout
from agent.edge.reclaimer import MemoryReclaimer

POD = "/kubepods/besteffort/poda"
STAT = (
    "anon 8192\ninactive_anon 8192\nactive_anon 4096\ninactive_file 999\nactive_file 1\nunevictable 0\n"
    "workingset_refault_anon 3\n"
)
CALM = "avg60=0.00 avg300=0.00 total=0\n"
PRESSURE = f"some avg10=1.50 {CALM}full avg10=0.00 {CALM}"
LOOK = PodLook(12288, 8192, 3 * 4096, 1.5)


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    folder = tmp_path / POD.lstrip("/")
    folder.mkdir(parents=True)
    for name, text in (("memory.stat", STAT), ("memory.pressure", PRESSURE), ("memory.reclaim", "")):
        (folder / name).write_text(text)
    return folder


def done(root: Path, *orders: ReclaimOrder) -> tuple[ReclaimAnswer, ...]:
    reclaimer = MemoryReclaimer(root, Layout("/kubepods", 2))
    reclaimer.submit(orders)
    assert reclaimer.idle(20)
    found = reclaimer.drain()
    assert reclaimer.drain() == ()
    reclaimer.close()
    return found


def test_a_look_writes_nothing(tmp_path: Path, pod: Path) -> None:
    """What memory.stat and memory.pressure say of the pod."""
    assert done(tmp_path, ReclaimOrder("a", POD)) == (ReclaimAnswer("a", look=LOOK),)
    assert (pod / "memory.reclaim").read_text() == ""


def test_a_step_asks_for_anonymous_memory(tmp_path: Path, pod: Path) -> None:
    """What was freed is told by memory.stat, not by the write."""
    assert done(tmp_path, ReclaimOrder("a", POD, 4096)) == (ReclaimAnswer("a", 4096, 0, LOOK),)
    assert (pod / "memory.reclaim").read_text() == "4096 swappiness=max"


BROKEN = {
    "memory.stat is garbage": ("memory.stat", "x\n"),
    "memory.stat is gone": ("memory.stat", None),
    "no pressure is kept": ("memory.pressure", None),
}


@pytest.mark.parametrize(("name", "text"), BROKEN.values(), ids=BROKEN)
def test_a_pod_that_cannot_be_read_is_not_touched(tmp_path: Path, pod: Path, name: str, text: str | None) -> None:
    """An answer without a look; nothing is written."""
    if text is None:
        (pod / name).unlink()
    else:
        (pod / name).write_text(text)
    assert done(tmp_path, ReclaimOrder("a", POD, 4096)) == (ReclaimAnswer("a", 4096),)
    assert (pod / "memory.reclaim").read_text() == ""


def test_a_kernel_without_memory_reclaim(tmp_path: Path, pod: Path) -> None:
    """The file is absent where its cgroup is not; a cgroup that is gone says nothing of the kernel."""
    (pod / "memory.reclaim").unlink()
    assert done(tmp_path, ReclaimOrder("a", POD, 4096)) == (ReclaimAnswer("a", 4096, unsupported=True),)
    gone = ReclaimOrder("b", "/kubepods/besteffort/podb", 4096)
    assert done(tmp_path, gone) == (ReclaimAnswer("b", 4096),)


@pytest.mark.parametrize("cgroup", ["/kubepods/burstable/podw", "/kubepods/besteffort", f"{POD}/../../burstable"])
def test_nobody_else_is_touched(tmp_path: Path, pod: Path, cgroup: str) -> None:
    """Only what lies below best effort."""
    folder = tmp_path / cgroup.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    for file in pod.iterdir():
        (folder / file.name).write_text(file.read_text())
    assert done(tmp_path, ReclaimOrder("w", cgroup, 4096)) == (ReclaimAnswer("w", 4096),)
    assert (folder / "memory.reclaim").read_text() == ""
