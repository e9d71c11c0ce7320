"""Koordinator's classes and bands with their defaults."""

from __future__ import annotations

import pytest

from model.qos import KubernetesQoS, PriorityBand, QoSClass, priority_band, qos_class


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
