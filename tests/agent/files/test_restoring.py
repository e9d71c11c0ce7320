"""Originals come back byte for byte, whatever else is gone or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.observe.observation import Knob
from agent.files.controlfiles import ControlFiles
from agent.files.restoring import Restored, restore
from model.fault import KernelFault

QUOTA = Knob("/kubepods/besteffort", "cpu", "cpu.cfs_quota_us")
SHARES = Knob("/kubepods/besteffort", "cpu", "cpu.shares")
V2_QUOTA = Knob("/kubepods.slice", "", "cpu.max")


@pytest.fixture
def files(tmp_path: Path) -> ControlFiles:
    return ControlFiles(tmp_path, lambda _knob, _texts: None)


def make(files: ControlFiles, knob: Knob, text: str) -> Path:
    path = files.path(knob)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_counted(files: ControlFiles) -> None:
    """One changed, one that somebody put back before us, one whose cgroup ended."""
    path = make(files, QUOTA, "5000\n")
    make(files, SHARES, "1024\n")
    gone = Knob("/kubepods/besteffort/podx", "cpu", "cpu.shares")
    found = restore(files, {QUOTA: "-1", SHARES: "1024", gone: "2"})
    assert found == Restored(1, 1, 1) and path.read_text() == "-1"
    assert str(found) == "1 control file restored, 1 held the original already, 1 gone with their cgroups"


@pytest.mark.parametrize("text", ["50000 50000", "1000 1000000", "max 50000", "max 100000", "100000 100000"])
def test_the_period_comes_back(files: ControlFiles, text: str) -> None:
    """An equal quota in another period is another text; 1000 in a second the kernel would refuse per 100 ms."""
    path = make(files, V2_QUOTA, "100000 100000\n")
    restore(files, {V2_QUOTA: text})
    assert path.read_text().strip() == text


@pytest.mark.parametrize(("held", "expected"), [("70001", "50000"), ("60000", "60000"), ("-1", "50000")])
def test_a_pod_that_was_resized(files: ControlFiles, held: str, expected: str) -> None:
    """A quota that was raised comes back, one that the kubelet wrote since stays."""
    knob = Knob("/kubepods/burstable/podx/c", "cpu", "cpu.cfs_quota_us")
    path = make(files, knob, held)
    restore(files, {knob: "50000"})
    assert path.read_text() == expected


def test_one_that_is_refused_keeps_no_other_back(files: ControlFiles) -> None:
    """The fault names it."""
    make(files, QUOTA, "").parent.joinpath("cpu.cfs_quota_us").unlink()
    files.path(QUOTA).mkdir()
    other = make(files, V2_QUOTA, "5000 100000\n")
    with pytest.raises(KernelFault, match=r"cpu\.cfs_quota_us: '-1' was refused: .*restore again"):
        restore(files, {QUOTA: "-1", V2_QUOTA: "max 100000"})
    assert other.read_text() == "max 100000"
