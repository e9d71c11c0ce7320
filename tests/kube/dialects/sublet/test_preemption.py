"""Words about preempting and being preempted."""

from __future__ import annotations

import pytest

from kube.dialects.sublet import preemption
from model.priority import PreemptionPolicy

LABEL, OURS = "scheduling.koordinator.sh/preemption-policy", "sublet.dev/preemption-policy"
NEVER, LOWER, ALWAYS = PreemptionPolicy.NEVER, PreemptionPolicy.LOWER, PreemptionPolicy.ALWAYS

POLICIES: dict[str, tuple[str | None, dict[str, str], dict[str, str], PreemptionPolicy]] = {
    "nothing said": (None, {}, {}, LOWER),
    "the spec": ("Never", {}, {}, NEVER),
    "Koordinator's label": ("PreemptLowerPriority", {LABEL: "Never"}, {}, NEVER),
    "the spec's Never stands": ("Never", {LABEL: "PreemptLowerPriority"}, {}, NEVER),
    "our annotation": ("PreemptLowerPriority", {}, {OURS: "PreemptAlways"}, ALWAYS),
    "Never wins over ours": ("Never", {}, {OURS: "PreemptAlways"}, NEVER),
    "only our annotation knows that word": ("PreemptAlways", {LABEL: "PreemptAlways"}, {}, LOWER),
    "an unknown word": (None, {LABEL: "Sometimes"}, {OURS: "sometimes"}, LOWER),
}


@pytest.mark.parametrize(("spec", "labels", "annotations", "expected"), POLICIES.values(), ids=POLICIES.keys())
def test_policy(
    spec: str | None, labels: dict[str, str], annotations: dict[str, str], expected: PreemptionPolicy
) -> None:
    """Never wins wherever it stands."""
    assert preemption.policy(spec, labels, annotations) is expected


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({}, {}, True),
        ({"scheduling.koordinator.sh/disable-preemptible": "true"}, {}, False),
        ({"scheduling.koordinator.sh/disable-preemptible": "false"}, {}, True),
        ({"quota.scheduling.koordinator.sh/preemptible": "false"}, {}, False),
        ({"volcano.sh/preemptable": "false"}, {}, False),
        ({}, {"volcano.sh/preemptable": "false"}, False),
        ({}, {"volcano.sh/preemptable": "true"}, True),
    ],
)
def test_protection(labels: dict[str, str], annotations: dict[str, str], expected: bool) -> None:
    """One word of any of the three is enough."""
    assert preemption.preemptible(labels, annotations) is expected
