"""Koordinator's labels, annotations, PodGroup and NodeSLO."""

from __future__ import annotations

from typing import Any

import pytest

from kube.dialects import koordinator
from kube.objects import Metadata, NodeSLO, PodGroup, PodGroupSpec
from model.fault import ConfigurationFault
from model.report import Usage
from model.strategy import SuppressStrategy
from model.workload import GangMode, GangSource, GangSpec

GANG = "gang.scheduling.koordinator.sh/"


def metadata(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Metadata:
    return Metadata(name="p", namespace="ns", labels=labels, annotations=annotations)


def test_pod_group_label_wins_over_annotation() -> None:
    """With the label, the PodGroup object alone defines the gang."""
    found = koordinator.gang_of(metadata({"pod-group.scheduling.sigs.k8s.io": "g"}, {GANG + "name": "other"}))
    assert found is not None
    assert (found.key, found.source, found.spec) == ("ns/g", GangSource.POD_GROUP, None)


def test_no_gang() -> None:
    """A pod that names no gang is alone."""
    assert koordinator.gang_of(metadata({"app": "x"})) is None


ANNOTATED: dict[str, tuple[dict[str, str], GangSpec]] = {
    "defaults": ({"min-available": "3"}, GangSpec(3, 3)),
    "everything": (
        {"min-available": "2", "total-number": "5", "mode": "NonStrict", "waiting-time": "1m30s"},
        GangSpec(2, 5, GangMode.NON_STRICT, 90.0),
    ),
    "illegal total, mode and time fall back": (
        {"min-available": "2", "total-number": "1", "mode": "strictish", "waiting-time": "soon"},
        GangSpec(2, 2),
    ),
    "zero waiting time falls back": ({"min-available": "2", "waiting-time": "0s"}, GangSpec(2, 2)),
}


@pytest.mark.parametrize(("annotations", "expected"), ANNOTATED.values(), ids=ANNOTATED.keys())
def test_annotated_gang(annotations: dict[str, str], expected: GangSpec) -> None:
    """Annotations as Koordinator reads them."""
    found = koordinator.gang_of(metadata(None, {GANG + "name": "g", **{GANG + k: v for k, v in annotations.items()}}))
    assert found is not None and found.spec == expected


@pytest.mark.parametrize("minimum", [None, "0", "-1", "two", "1.5"])
def test_annotated_gang_without_usable_minimum(minimum: str | None) -> None:
    """The problem names the annotation and the fix."""
    annotations = {GANG + "name": "g"} | ({GANG + "min-available": minimum} if minimum else {})
    found = koordinator.gang_of(metadata(None, annotations))
    assert found is not None and found.spec is not None
    assert "gang.scheduling.koordinator.sh/min-available" in found.spec.problem


@pytest.mark.parametrize(
    ("minimum", "told"),
    [(0, "is 0"), (-2, "is -2"), (None, "is missing"), ("x", "is 'x'"), (1.5, "is 1.5"), (True, "is True")],
)
def test_pod_group_without_usable_minimum(minimum: Any, told: str) -> None:
    """minMember 0 is one clear sentence with object, field and fix."""
    gang = koordinator.pod_group(PodGroup(metadata(), PodGroupSpec(min_member=minimum)))
    assert gang.spec.problem == f"PodGroup ns/p: spec.minMember {told}; write a whole number of 1 or more"


def test_pod_group() -> None:
    """minMember, timeout and the annotations of the object."""
    group = PodGroup(metadata(None, {GANG + "mode": "NonStrict"}), PodGroupSpec(3, 60))
    assert koordinator.pod_group(group).spec == GangSpec(3, 3, GangMode.NON_STRICT, 60.0)


def slo(section: Any) -> NodeSLO:
    return NodeSLO(Metadata(name="n"), {"resourceUsedThresholdWithBE": section})


def test_suppress_strategy() -> None:
    """Set fields override, unset ones keep the cluster's default."""
    defaults = SuppressStrategy()
    assert koordinator.suppress_strategy(NodeSLO(Metadata(name="n")), defaults) == defaults
    assert koordinator.suppress_strategy(slo({"cpuSuppressThresholdPercent": 65}), defaults).threshold_pct == 65
    changed = koordinator.suppress_strategy(slo({"enable": False, "cpuSuppressMinPercent": 0}), defaults)
    assert (changed.enable, changed.min_pct, changed.threshold_pct) == (False, 0, 95)


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ({"cpuSuppressThresholdPercent": 150}, "cpuSuppressThresholdPercent: is 150"),
        ({"cpuSuppressThresholdPercent": "65"}, "cpuSuppressThresholdPercent: is '65'"),
        ({"cpuSuppressMinPercent": True}, "cpuSuppressMinPercent: is True"),
        ({"cpuSuppressPolicy": "turbo"}, "cpuSuppressPolicy: is 'turbo'"),
        ({"enable": "yes"}, "enable: is 'yes'"),
        ([], "resourceUsedThresholdWithBE: is not an object"),
        ("x", "resourceUsedThresholdWithBE: is not an object"),
    ],
)
def test_a_broken_node_slo_names_the_field(section: Any, field: str) -> None:
    """Object, field, value and fix in one line."""
    with pytest.raises(ConfigurationFault, match=r"NodeSLO n: spec\.resourceUsedThresholdWithBE") as told:
        koordinator.suppress_strategy(slo(section), SuppressStrategy())
    assert field in str(told.value)


def test_node_metric_status_is_sorted() -> None:
    """Rows by namespace and name, quantities as Kubernetes writes them."""
    rows = [
        koordinator.PodMetric("b", "a", Usage(1500, 7), "koord-prod", "LS"),
        koordinator.PodMetric("a", "z", Usage(), "", ""),
    ]
    status = koordinator.node_metric_status("2026-01-01T00:00:00Z", Usage(2000, 5), Usage(1, 2), rows)
    assert status["nodeMetric"]["nodeUsage"] == {"resources": {"cpu": "2", "memory": "5"}}
    assert [row["name"] for row in status["podsMetric"]] == ["z", "a"]
    assert status["podsMetric"][1]["podUsage"]["resources"]["cpu"] == "1500m"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3600s", 3600), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25), ("", None), ("5", None), ("s", None)],
)
def test_go_durations(text: str, seconds: float | None) -> None:
    """A number alone is no duration."""
    assert koordinator.go_duration_seconds(text) == seconds


def test_a_node_slo_whose_spec_is_no_object_is_refused() -> None:
    """It must not pass for one that is absent."""
    with pytest.raises(ConfigurationFault, match=r"NodeSLO n: spec: is not an object"):
        koordinator.suppress_strategy(NodeSLO(Metadata(name="n"), "hello"), SuppressStrategy())
