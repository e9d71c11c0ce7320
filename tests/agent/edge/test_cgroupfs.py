"""Reading through cached descriptors: replaced and vanished cgroups are values, garbage is reported once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent.core.layout import KubepodsLayout
from agent.core.observation import Absence, CgroupSample, Missing
from agent.edge.cgroupfs import CgroupReader
from model.fault import KernelFault

STAT = "total_inactive_anon 1\ntotal_active_anon 2\ntotal_unevictable 4\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for controller in ("cpu", "cpuacct", "memory"):
        (tmp_path / controller / "kubepods/besteffort").mkdir(parents=True)
    fill(tmp_path, "kubepods", 5)
    return tmp_path


def fill(tree: Path, cgroup: str, cpu_ns: int) -> None:
    for controller, file, text in (
        ("cpuacct", "cpuacct.usage", f"{cpu_ns}\n"),
        ("memory", "memory.stat", STAT),
        ("cpu", "cpu.stat", "nr_periods 4\nnr_throttled 1\nthrottled_time 9\n"),
    ):
        folder = tree / controller / cgroup
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)


def test_sample(tree: Path) -> None:
    """CPU in ns, memory without page cache, throttling where asked for."""
    reader = CgroupReader(tree)
    assert reader.sample("/kubepods") == CgroupSample(5, 7)
    throttled = reader.sample("/kubepods", throttling=True)
    assert (
        isinstance(throttled, CgroupSample) and throttled.throttling is not None and throttled.throttling.throttled == 1
    )


def test_a_vanished_cgroup_is_a_value_and_comes_back(tree: Path) -> None:
    """Gone is not an error; a new cgroup of that name is read afresh."""
    fill(tree, "kubepods/podx", 100)
    reader = CgroupReader(tree)
    assert reader.sample("/kubepods/podx") == CgroupSample(100, 7)
    reader.forget(set())
    for controller in ("cpu", "cpuacct", "memory"):
        shutil.rmtree(tree / controller / "kubepods/podx")
    gone = reader.sample("/kubepods/podx")
    assert isinstance(gone, Missing) and gone.absence is Absence.GONE
    fill(tree, "kubepods/podx", 3)
    assert reader.sample("/kubepods/podx") == CgroupSample(3, 7)


def test_garbage_is_reported_once(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One clear line that names the file, not one a second."""
    path = tree / "cpuacct/kubepods/cpuacct.usage"
    path.write_text("not a number")
    reader = CgroupReader(tree)
    for _ in range(3):
        found = reader.sample("/kubepods")
        assert isinstance(found, Missing) and found.absence is Absence.UNREADABLE and "not a number" in found.detail
    assert capsys.readouterr().out.count("control file unreadable") == 1
    path.write_text("8")
    assert reader.sample("/kubepods") == CgroupSample(8, 7)


def test_forget_closes_descriptors(tree: Path) -> None:
    """A pod that left keeps nothing open."""
    fill(tree, "kubepods/podx", 1)
    reader = CgroupReader(tree)
    reader.sample("/kubepods/podx")
    reader.sample("/kubepods")
    reader.forget({"/kubepods"})
    assert set(reader._descriptors) == {"cpuacct/kubepods/cpuacct.usage", "memory/kubepods/memory.stat"}


def test_a_tree_we_cannot_work_on_is_refused(tree: Path, tmp_path: Path) -> None:
    """One line with the path and the fix, before anything is touched."""
    with pytest.raises(KernelFault, match=r"/cpu/nope/besteffort: does not exist .*--kubepods"):
        CgroupReader(tree).require(KubepodsLayout("/nope"))
    (tree / "cgroup.controllers").touch()
    with pytest.raises(KernelFault, match="cgroup v2"):
        CgroupReader(tree).require(KubepodsLayout("/kubepods"))
