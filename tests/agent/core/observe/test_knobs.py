"""The owned control files of both cgroup versions, and their text as one number each."""

from __future__ import annotations

import pytest

from agent.core.observe.knobs import (
    RootKnobs,
    cpu_qos_knob,
    is_below_best_effort,
    is_of_kubelet,
    memory_knob,
    memory_qos_knob,
    quota_knob,
    same,
    text_of,
    value_of,
)
from agent.core.observe.layout import CgroupDriver, Layout
from agent.core.observe.observation import Knob, Value
from model.qos import KubernetesQoS

V1 = RootKnobs.of(Layout("/kubepods"))
SYSTEMD = Layout("/kubepods.slice", 2, CgroupDriver.SYSTEMD)
V2 = RootKnobs.of(SYSTEMD)
V1_MEMORY = memory_knob(Layout("/kubepods"), "/kubepods/besteffort/podx")
V2_MEMORY = memory_knob(SYSTEMD, "/kubepods.slice/podx")
V2_KEPT = memory_qos_knob(SYSTEMD, "/kubepods.slice/podx", "memory.min")

V1_IDENTITY = cpu_qos_knob(Layout("/kubepods"), "/kubepods/besteffort/podx", "cpu.bvt_warp_ns")
V2_CLAMP = cpu_qos_knob(SYSTEMD, "/kubepods.slice/podx", "cpu.uclamp.max")


def test_what_is_owned() -> None:
    """v1: quota, period, shares; v2: cpu.max holds both, and the smallest weight is 1; the rest is read for policies."""
    assert [(knob.controller, knob.file) for knob in V1.all] == [
        ("cpu", "cpu.cfs_quota_us"),
        ("cpu", "cpu.cfs_period_us"),
        ("cpu", "cpu.shares"),
        ("cpuset", "cpuset.cpus"),
        ("cpu", "cpu.idle"),
        ("pids", "pids.max"),
    ]
    assert [fixed.value for fixed in V1.fixed] == [100_000, 2]
    assert [(knob.controller, knob.file) for knob in V2.all] == [
        ("", "cpu.max"),
        ("", "cpu.weight"),
        ("", "cpuset.cpus"),
        ("", "cpu.idle"),
        ("", "pids.max"),
        ("", "memory.high"),
    ]
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
        (V1.cpuset, b"0-3,8\n", "0-3,8"),
        (V1.cpuset, b"0,1\n", "0-1"),
        (V2.cpuset, b"\n", ""),
        (V1.idle, b"1\n", 1),
        (V1_MEMORY, b"9223372036854771712\n", -1),
        # Whole pages of 64 KiB.
        (V1_MEMORY, b"9223372036854710272\n", -1),
        (V1_MEMORY, b"1048576\n", 1 << 20),
        (V2_MEMORY, b"max\n", -1),
        (V2_MEMORY, b"0\n", 0),
        (V2_KEPT, b"max\n", -1),
        (V2_KEPT, b"4096\n", 4096),
        (V1.pids, b"max\n", -1),
        (V2.pids, b"16384\n", 16_384),
        (V1_IDENTITY, b"-1\n", -1),
        (V1_IDENTITY, b"2\n", 2),
        (V2_CLAMP, b"max\n", 100),
        (V2_CLAMP, b"20.00\n", 20),
    ],
)
def test_reading(knob: Knob, text: bytes, value: Value) -> None:
    """One value a file: a number, the quota per 100 ms, -1 without a limit; CPU lists as the kernel prints them."""
    assert value_of(knob, text) == value


@pytest.mark.parametrize("text", [b"", b"max", b"max x\n", b"100000\n", b"5 0\n", b"5 -1\n", b"x 100000\n"])
def test_garbage_in_cpu_max(text: bytes) -> None:
    """ValueError, never a limit."""
    with pytest.raises(ValueError):
        value_of(V2.quota, text)


@pytest.mark.parametrize(
    ("knob", "text"),
    [(V1.cpuset, b"3-1"), (V1.cpuset, b"x"), (V1_MEMORY, b"-1"), (V2_MEMORY, b""), (V1.idle, b""), (V1.pids, b"-1")],
)
def test_garbage_elsewhere(knob: Knob, text: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError):
        value_of(knob, text)


@pytest.mark.parametrize(
    ("knob", "value", "text"),
    [
        (V1.quota, -1, "-1"),
        (V1.quota, 5000, "5000"),
        (V2.quota, -1, "max 100000"),
        (V2.quota, 5000, "5000 100000"),
        (V1.cpuset, "0-3,8", "0-3,8"),
        (V2.cpuset, "", ""),
        (V2_MEMORY, -1, "max"),
        (V2_MEMORY, 4096, "4096"),
        (V2_KEPT, -1, "max"),
        (V2_KEPT, 0, "0"),
        (V1_MEMORY, 4096, "4096"),
        (V1.pids, -1, "max"),
        (V2.pids, 4096, "4096"),
    ],
)
def test_writing(knob: Knob, value: Value, text: str) -> None:
    """What is written reads back as the same number."""
    assert text_of(knob, value) == text
    assert value_of(knob, text.encode()) == value


@pytest.mark.parametrize(
    ("knob", "held", "wanted", "expected"),
    [
        (V1_MEMORY, 999_424, 1_000_000, True),
        (V1_MEMORY, 1_000_000, 999_424, False),
        (V1_MEMORY, 900_000, 1_000_000, False),
        (V1_MEMORY, -1, 1_000_000, False),
        (V1_MEMORY, -1, -1, True),
        (V2_KEPT, 999_424, 1_000_000, True),
        (V2_KEPT, 0, 1_000_000, False),
        (V1.quota, 999, 1000, False),
        (V1.cpuset, "0-1", "0-1", True),
    ],
)
def test_same(knob: Knob, held: Value, wanted: Value, expected: bool) -> None:
    """Of an amount of memory the kernel keeps whole pages, of everything else what it was told."""
    assert same(knob, held, wanted) is expected


@pytest.mark.parametrize("layout", [Layout(), Layout(version=2), Layout("/kubepods.slice", 2, CgroupDriver.SYSTEMD)])
def test_whose_word_a_quota_is(layout: Layout) -> None:
    """Of online pods and containers, whole milli-CPU are the kubelet's; of best effort's nothing is told by a number."""
    for qos in (KubernetesQoS.GUARANTEED, KubernetesQoS.BURSTABLE):
        for cgroup in (layout.pod(qos, "u1"), f"{layout.pod(qos, 'u1')}/c"):
            quota = quota_knob(layout, cgroup)
            assert is_of_kubelet(quota, 50_000) and not is_of_kubelet(quota, 60_001) and not is_of_kubelet(quota, -1)
            assert not is_of_kubelet(memory_knob(layout, cgroup), 50_000)
    for cgroup in (layout.pod(KubernetesQoS.BEST_EFFORT, "u1"), layout.best_effort, layout.burstable, layout.root):
        assert not is_of_kubelet(quota_knob(layout, cgroup), 50_000)


@pytest.mark.parametrize(
    ("cgroup", "expected"),
    [
        ("/kubepods/besteffort", True),
        ("/kubepods/besteffort/podx/c", True),
        ("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podx.slice", True),
        ("/kubepods/burstable/podx", False),
        ("/kubepods/podbesteffort", False),
    ],
)
def test_below_best_effort(cgroup: str, expected: bool) -> None:
    """By the names that kubelets give."""
    assert is_below_best_effort(Knob(cgroup, "cpu", "cpu.bvt_warp_ns")) is expected


@pytest.mark.parametrize(("value", "text"), [(-1, "-1"), (2, "2")])
def test_an_identity_is_no_limit(value: int, text: str) -> None:
    """-1 is a value as any other."""
    assert text_of(V1_IDENTITY, value) == text
