"""The owned control files of both cgroup versions, and their text as one number each."""

from __future__ import annotations

import pytest

from agent.core.knobs import Knobs, text_of, value_of
from agent.core.layout import CgroupDriver, Layout
from agent.core.observation import Knob

V1 = Knobs.of(Layout("/kubepods"))
V2 = Knobs.of(Layout("/kubepods.slice", 2, CgroupDriver.SYSTEMD))


def test_what_is_owned() -> None:
    """v1: quota, period, shares; v2: cpu.max holds both, and the smallest weight is 1."""
    assert [(knob.controller, knob.file) for knob in V1.all] == [
        ("cpu", "cpu.cfs_quota_us"),
        ("cpu", "cpu.cfs_period_us"),
        ("cpu", "cpu.shares"),
    ]
    assert [fixed.value for fixed in V1.fixed] == [100_000, 2]
    assert [(knob.controller, knob.file) for knob in V2.all] == [("", "cpu.max"), ("", "cpu.weight")]
    assert [fixed.value for fixed in V2.fixed] == [1]
    assert {knob.cgroup for knob in V2.all} == {"/kubepods.slice/kubepods-besteffort.slice"}


@pytest.mark.parametrize(
    ("knob", "text", "value"),
    [
        (V1.quota, b"-1\n", -1),
        (V1.quota, b"150000\n", 150_000),
        (V2.quota, b"max 100000\n", -1),
        (V2.quota, b"150000 100000\n", 150_000),
        # Half a CPU, counted by its writer per 10 ms.
        (V2.quota, b"5000 10000\n", 50_000),
        (V2.fixed[0].knob, b"39\n", 39),
    ],
)
def test_reading(knob: Knob, text: bytes, value: int) -> None:
    """One number a file, the quota per 100 ms and -1 without a limit."""
    assert value_of(knob, text) == value


@pytest.mark.parametrize("text", [b"", b"max", b"max x\n", b"100000\n", b"5 0\n", b"5 -1\n", b"x 100000\n"])
def test_garbage_in_cpu_max(text: bytes) -> None:
    """ValueError, never a limit."""
    with pytest.raises(ValueError):
        value_of(V2.quota, text)


@pytest.mark.parametrize(
    ("knob", "value", "text"),
    [(V1.quota, -1, "-1"), (V1.quota, 5000, "5000"), (V2.quota, -1, "max 100000"), (V2.quota, 5000, "5000 100000")],
)
def test_writing(knob: Knob, value: int, text: str) -> None:
    """What is written reads back as the same number."""
    assert text_of(knob, value) == text
    assert value_of(knob, text.encode()) == value
