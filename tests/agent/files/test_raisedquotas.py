"""Quotas that bursts raised come down to their limits, and nothing that the kubelet wrote is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.observe.observation import Knob
from agent.files.controlfiles import ControlFiles
from agent.files.raisedquotas import lower_raised

POD, CONTAINER = "/kubepods/burstable/podu", "/kubepods/burstable/podu/main"
BATCH = "/kubepods/besteffort/podx"


def quota(cgroup: str) -> Knob:
    return Knob(cgroup, "cpu", "cpu.cfs_quota_us")


@pytest.fixture
def files(tmp_path: Path) -> ControlFiles:
    return ControlFiles(tmp_path, lambda _knob, _texts: None)


def say(files: ControlFiles, cgroup: str, text: str) -> None:
    path = files.path(quota(cgroup))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# what is held, the original -> what is held then
QUOTAS = {
    "raised": ("60001", "50000", "50000"),
    "the kubelet's since": ("80000", "50000", "80000"),
    "unlimited by whomever": ("-1", "50000", "-1"),
    "at its limit": ("50000", "50000", "50000"),
    "less than its original": ("40001", "50000", "40001"),
    "had no limit": ("60001", "-1", "60001"),
}


@pytest.mark.parametrize(("held", "original", "then"), QUOTAS.values(), ids=QUOTAS)
def test_a_quota(files: ControlFiles, held: str, original: str, then: str) -> None:
    """Of a container and of its pod."""
    for cgroup in (POD, CONTAINER):
        say(files, cgroup, held)
    lowered = lower_raised(files, dict.fromkeys(map(quota, (POD, CONTAINER)), original))
    assert lowered == (2 if held != then else 0)
    assert {files.path(quota(cgroup)).read_text() for cgroup in (POD, CONTAINER)} == {then}


def test_what_is_not_a_raised_quota(files: ControlFiles) -> None:
    """Best effort's own limits stay, and so does what is gone."""
    say(files, BATCH, "60001")
    shares = Knob(POD, "cpu", "cpu.shares")
    files.path(shares).parent.mkdir(parents=True)
    files.path(shares).write_text("77")
    assert lower_raised(files, {quota(BATCH): "50000", shares: "2", quota(POD): "50000"}) == 0
    assert files.path(quota(BATCH)).read_text() == "60001" and files.path(shares).read_text() == "77"
