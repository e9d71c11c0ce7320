"""Koordinator's classes and bands with their defaults."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from model.qos import (
    RECOMMENDED,
    USUAL_CPU,
    CpuQos,
    CpuQosStrategy,
    KubernetesQoS,
    MemoryQos,
    MemoryQosPolicy,
    MemoryQosStrategy,
    PodMemoryQos,
    PriorityBand,
    QoSClass,
    UclampStrategy,
    below_prod,
    priority_band,
    qos_class,
)


@pytest.mark.parametrize(
    ("label", "kubernetes", "expected"),
    [
        ("BE", KubernetesQoS.GUARANTEED, QoSClass.BE),
        (None, KubernetesQoS.GUARANTEED, QoSClass.LSR),
        (None, KubernetesQoS.BURSTABLE, QoSClass.LS),
        (None, KubernetesQoS.BEST_EFFORT, QoSClass.BE),
        ("be", KubernetesQoS.BURSTABLE, QoSClass.LS),
        ("", KubernetesQoS.BEST_EFFORT, QoSClass.BE),
    ],
)
def test_class_with_default(label: str | None, kubernetes: KubernetesQoS, expected: QoSClass) -> None:
    """A known label wins, anything else falls back to the Kubernetes class."""
    assert qos_class(label, kubernetes) is expected


@pytest.mark.parametrize(
    ("label", "priority", "qos", "expected"),
    [
        ("koord-mid", 9500, QoSClass.LS, PriorityBand.MID),
        (None, 9000, QoSClass.BE, PriorityBand.PROD),
        (None, 5999, QoSClass.LS, PriorityBand.BATCH),
        (None, 6000, QoSClass.LS, PriorityBand.PROD),
        (None, 6000, QoSClass.BE, PriorityBand.BATCH),
        (None, None, QoSClass.BE, PriorityBand.BATCH),
        ("unknown", 3500, QoSClass.LS, PriorityBand.FREE),
        (None, 1000, QoSClass.SYSTEM, PriorityBand.PROD),
    ],
)
def test_band_with_default(label: str | None, priority: int | None, qos: QoSClass, expected: PriorityBand) -> None:
    """Label, then number, then BE means batch and everything else production."""
    assert priority_band(label, priority, qos) is expected


@pytest.mark.parametrize(
    ("label", "priority", "qos_label", "expected"),
    [
        (None, None, QoSClass.NONE, False),
        (None, 0, QoSClass.LS, False),
        (None, 0, QoSClass.BE, True),
        ("koord-batch", 0, QoSClass.NONE, True),
        ("koord-mid", 9500, QoSClass.LS, True),
        ("koord-free", 10_000, QoSClass.NONE, True),
        ("koord-prod", 5999, QoSClass.LS, True),
        ("koord-prod", 9000, QoSClass.LS, False),
        ("unknown", 8000, QoSClass.NONE, False),
        *((None, number, QoSClass.NONE, True) for number in (3000, 3999, 5000, 5999, 7000, 7999)),
        *((None, number, QoSClass.NONE, False) for number in (2999, 4000, 4999, 6000, 6999, 8000)),
    ],
)
def test_below_prod(label: str | None, priority: int | None, qos_label: QoSClass, expected: bool) -> None:
    """Any of a pod's own words is enough, and none outweighs another."""
    assert below_prod(label, priority, qos_label) is expected


HALF = MemoryQos(min_pct=50)
STRATEGY = MemoryQosStrategy(lsr=MemoryQos(min_pct=100), ls=HALF, be=MemoryQos(throttling_pct=80))
NONE, AUTO = PodMemoryQos(MemoryQosPolicy.NONE, HALF), PodMemoryQos(MemoryQosPolicy.AUTO)

# class, the pod's own words -> what holds
CASES: dict[str, tuple[QoSClass, PodMemoryQos | None, MemoryQos | None]] = {
    "by class": (QoSClass.LS, None, HALF),
    "LSE as LSR": (QoSClass.LSE, None, MemoryQos(min_pct=100)),
    "best effort": (QoSClass.BE, None, MemoryQos(throttling_pct=80)),
    "a class that is off": (QoSClass.SYSTEM, None, None),
    "none: off, whatever else it says": (QoSClass.LS, NONE, None),
    "auto": (QoSClass.LS, AUTO, RECOMMENDED.ls),
    "auto, of a class that is off": (QoSClass.SYSTEM, AUTO, RECOMMENDED.system),
    "auto and a field": (
        QoSClass.LS,
        PodMemoryQos(MemoryQosPolicy.AUTO, MemoryQos(throttling_pct=80)),
        replace(RECOMMENDED.ls or MemoryQos(), throttling_pct=80),
    ),
    "a field over its class": (
        QoSClass.LS,
        PodMemoryQos(fields=MemoryQos(low_pct=20)),
        MemoryQos(min_pct=50, low_pct=20),
    ),
    "a field of a class that is off": (
        QoSClass.SYSTEM,
        PodMemoryQos(fields=MemoryQos(low_pct=20)),
        MemoryQos(low_pct=20),
    ),
    "an annotation without anything": (QoSClass.SYSTEM, PodMemoryQos(), None),
}


@pytest.mark.parametrize(("qos", "own", "expected"), CASES.values(), ids=CASES)
def test_of_a_pod(qos: QoSClass, own: PodMemoryQos | None, expected: MemoryQos | None) -> None:
    """Its own fields, then its policy, then its class."""
    assert STRATEGY.of_pod(qos, own) == expected


CPU: dict[str, tuple[CpuQosStrategy, QoSClass, QoSClass, int | None, CpuQos | None]] = {
    "LSE by lsr": (USUAL_CPU, QoSClass.LSE, QoSClass.LSE, None, CpuQos(2)),
    "LS": (USUAL_CPU, QoSClass.LS, QoSClass.LS, None, CpuQos(2)),
    "its own": (USUAL_CPU, QoSClass.LS, QoSClass.LS, 1, CpuQos(1)),
    "its own, without a label": (USUAL_CPU, QoSClass.LS, QoSClass.NONE, 1, CpuQos(2)),
    "its own, of another class": (USUAL_CPU, QoSClass.LSR, QoSClass.LSR, 1, CpuQos(2)),
    "BE": (USUAL_CPU, QoSClass.BE, QoSClass.BE, None, CpuQos(-1)),
    "SYSTEM": (USUAL_CPU, QoSClass.SYSTEM, QoSClass.SYSTEM, None, CpuQos(0)),
    "Guaranteed where lsr is off": (CpuQosStrategy(ls=CpuQos(1)), QoSClass.LSR, QoSClass.NONE, None, CpuQos(1)),
    "LSR where lsr is off": (CpuQosStrategy(ls=CpuQos(1)), QoSClass.LSR, QoSClass.LSR, None, None),
    "its own where its class is off": (CpuQosStrategy(), QoSClass.LS, QoSClass.LS, 1, None),
}


@pytest.mark.parametrize(("strategy", "qos", "label", "own", "expected"), CPU.values(), ids=CPU)
def test_cpu_qos_of_a_pod(
    strategy: CpuQosStrategy, qos: QoSClass, label: QoSClass, own: int | None, expected: CpuQos | None
) -> None:
    """By its class; an LS pod's own identity goes before that."""
    assert strategy.of_pod(qos, label, own) == expected


@pytest.mark.parametrize(
    ("qos", "expected"),
    [
        (QoSClass.LSE, 60),
        (QoSClass.LSR, 60),
        (QoSClass.LS, 20),
        (QoSClass.NONE, 20),
        (QoSClass.BE, 0),
        (QoSClass.SYSTEM, 0),
    ],
)
def test_clamps(qos: QoSClass, expected: int) -> None:
    """Of online classes; nothing where nothing is said."""
    assert UclampStrategy(lsr_min_pct=60, ls_min_pct=20).min_pct(qos) == expected
    assert UclampStrategy(be_max_pct=10).min_pct(qos) == 0
