"""What a pod keeps of its node's CPUs from others."""

from __future__ import annotations

import pytest

from model.cpubinding import BoundCpus, CpuRequest, ExclusivePolicy
from model.pod.colocation import Colocation
from model.qos import QoSClass

PCPU = ExclusivePolicy.PCPU_LEVEL


@pytest.mark.parametrize(
    ("colocation", "expected"),
    [
        (Colocation(qos_label=QoSClass.LSE), None),
        (Colocation(qos_label=QoSClass.LSE, cpuset="0,2"), BoundCpus(0b101)),
        (Colocation(qos_label=QoSClass.LSR, cpuset="1", cpus=CpuRequest(1, exclusive=PCPU)), BoundCpus(0b10, PCPU)),
        (Colocation(cpuset="1"), BoundCpus(0b10)),
        (Colocation(qos_label=QoSClass.BE, cpuset="1"), None),
    ],
)
def test_bound_cpus(colocation: Colocation, expected: BoundCpus | None) -> None:
    """Those of its status, with its word on sharing; batch work keeps none."""
    assert colocation.bound_cpus == expected
