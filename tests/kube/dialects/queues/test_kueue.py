"""Kueue's ClusterQueue and Cohort in both versions, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube.dialects.queues.kueue import cluster_queue, cohort, flavors_of, shares_fairly, unmet
from kube.objects import ClusterQueue, Cohort, Metadata
from model.fault import ConfigurationFault
from model.queue import (
    FlavorGroup,
    FlavorPreference,
    FlavorStop,
    Fungibility,
    QueueAdmission,
    QueueOrder,
    QueuePreemption,
    QueueState,
    QuotaCell,
    VictimPolicy,
)
from model.selector import Operator, Requirement, Selector

EXAMPLE = Path(__file__).parents[4] / "examples" / "kueue" / "training.yaml"
GPU = "nvidia.com/gpu"
TI = 1 << 40


def quotas(*flavors: tuple[str, dict[str, Any]], covered: tuple[str, ...] = ("cpu",)) -> list[dict[str, Any]]:
    """One group; of each flavour the fields of its first resource."""
    listed = [
        {"name": name, "resources": [{"name": each, "nominalQuota": 4, **fields} for each in covered]}
        for name, fields in flavors
    ]
    return [{"coveredResources": list(covered), "flavors": listed}]


def source(**spec: Any) -> ClusterQueue:
    return ClusterQueue(Metadata("team"), {"namespaceSelector": {}, **spec})


def group(**spec: Any) -> Cohort:
    return Cohort(Metadata("org"), spec)


def test_the_published_manifest() -> None:
    """S67: a100 first; CPU and memory without a borrowing limit, GPUs with one."""
    (body,) = (each for each in yaml.safe_load_all(EXAMPLE.read_text()) if each["kind"] == "ClusterQueue")
    found = cluster_queue(ClusterQueue(Metadata(body["metadata"]["name"]), body["spec"]))
    assert (found.name, found.parent) == ("training-cluster-queue", "cohort/ai-platform")
    assert found.flavor_groups == (FlavorGroup(("cpu", "memory", GPU), ("gpu-a100", "gpu-v100")),)
    assert found.cells == {
        ("gpu-a100", "cpu"): QuotaCell(nominal=256_000),
        ("gpu-a100", "memory"): QuotaCell(nominal=2 * TI),
        ("gpu-a100", GPU): QuotaCell(nominal=64, borrowing_limit=16),
        ("gpu-v100", "cpu"): QuotaCell(nominal=128_000),
        ("gpu-v100", "memory"): QuotaCell(nominal=TI),
        ("gpu-v100", GPU): QuotaCell(nominal=32),
    }
    assert found.admission == QueueAdmission()
    assert found.fungibility == Fungibility(FlavorStop.STOP, FlavorStop.NEXT, FlavorPreference.BORROWING)
    assert found.preemption == QueuePreemption(within=VictimPolicy.LOWER, reclaim=VictimPolicy.ANY)
    assert list(flavors_of(found)) == ["gpu-a100", "gpu-v100"]


BOTH = Fungibility(FlavorStop.NEXT, FlavorStop.NEXT)
FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "v1beta1's cohort": ({"cohort": "org"}, {"parent": "cohort/org"}),
    "v1beta2's cohort": ({"cohortName": "org"}, {"parent": "cohort/org"}),
    "without a cohort no more than its own": (
        {"resourceGroups": quotas(("a", {}))},
        {"parent": "", "cells": {("a", "cpu"): QuotaCell(nominal=4000, maximum=4000)}},
    ),
    "limits in a cohort": (
        {"cohortName": "org", "resourceGroups": quotas(("a", {"borrowingLimit": "500m", "lendingLimit": 0}))},
        {"cells": {("a", "cpu"): QuotaCell(nominal=4000, borrowing_limit=500, lending_limit=0)}},
    ),
    "strict order": ({"queueingStrategy": "StrictFIFO"}, {"order": QueueOrder.STRICT_FIFO}),
    "the usual order": ({}, {"order": QueueOrder.BEST_EFFORT_FIFO}),
    "on hold": ({"stopPolicy": "Hold"}, {"state": QueueState.HOLD}),
    "drained": ({"stopPolicy": "HoldAndDrain"}, {"state": QueueState.DRAIN}),
    "open": ({"stopPolicy": "None"}, {"state": QueueState.OPEN}),
    "a weight": ({"fairSharing": {"weight": "1.5"}}, {"weight": 1500}),
    "a weight of nothing": ({"fairSharing": {"weight": 0}}, {"weight": 1}),
    "v1beta1's words for fungibility": (
        {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}},
        {"fungibility": Fungibility(FlavorStop.STOP, FlavorStop.STOP)},
    ),
    "v1beta2's words for it": (
        {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "MayStopSearch"}},
        {"fungibility": Fungibility(FlavorStop.NEXT, FlavorStop.STOP)},
    ),
    "which of two": (
        {
            "flavorFungibility": {
                "whenCanBorrow": "TryNextFlavor",
                "whenCanPreempt": "TryNextFlavor",
                "preference": "PreemptionOverBorrowing",
            }
        },
        {"fungibility": Fungibility(FlavorStop.NEXT, FlavorStop.NEXT, FlavorPreference.PREEMPTION)},
    ),
    "nobody is evicted by default": (
        {},
        {"preemption": QueuePreemption(within=VictimPolicy.NEVER, reclaim=VictimPolicy.NEVER)},
    ),
    "evictions to borrow": (
        {
            "preemption": {
                "reclaimWithinCohort": "LowerPriority",
                "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
            }
        },
        {
            "preemption": QueuePreemption(
                within=VictimPolicy.NEVER,
                reclaim=VictimPolicy.LOWER,
                borrowing=VictimPolicy.LOWER,
                borrowing_most=100,
            )
        },
    ),
    "selected namespaces": (
        {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        {"admission": QueueAdmission(namespace_selector=Selector((Requirement("team", Operator.IN, ("a",)),)))},
    ),
    "no namespace": (
        {"namespaceSelector": None},
        {"admission": QueueAdmission(namespace_selector=Selector((Requirement("", Operator.EXISTS),)))},
    ),
}


@pytest.mark.parametrize(("spec", "wanted"), FIELDS.values(), ids=FIELDS)
def test_fields(spec: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = cluster_queue(source(**spec))
    assert {name: getattr(found, name) for name in wanted} == wanted


def test_a_cohort() -> None:
    """With amounts of its own, below another."""
    found = cohort(group(parentName="top", resourceGroups=quotas(("a", {"lendingLimit": 1}))))
    assert (found.name, found.parent, found.source) == ("cohort/org", "cohort/top", "Cohort/org")
    assert found.cells == {("a", "cpu"): QuotaCell(nominal=4000, lending_limit=1000)}
    assert cohort(group(parent="old")).parent == "cohort/old"


PREEMPTION = {"reclaimWithinCohort": "Never", "borrowWithinCohort": {"policy": "LowerPriority"}}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "two cohorts": ({"cohort": "a", "cohortName": "b"}, 'spec.cohortName: is "b", and spec.cohort'),
    "a quota below nothing": (
        {"resourceGroups": quotas(("a", {"nominalQuota": -1}))},
        "spec.resourceGroups[0].flavors[0].resources[cpu].nominalQuota",
    ),
    "no quota": ({"resourceGroups": quotas(("a", {"nominalQuota": None}))}, "nominalQuota: is missing"),
    "no amount": ({"resourceGroups": quotas(("a", {"nominalQuota": "much"}))}, "nominalQuota"),
    "a limit without a cohort": (
        {"resourceGroups": quotas(("a", {"borrowingLimit": 1}))},
        "borrowingLimit: is set, and spec.cohortName is empty",
    ),
    "a limit below nothing": (
        {"cohort": "a", "resourceGroups": quotas(("a", {"lendingLimit": "-1"}))},
        "lendingLimit",
    ),
    "a resource in two groups": (
        {"resourceGroups": [*quotas(("a", {})), *quotas(("b", {}))]},
        "spec.resourceGroups[1].coveredResources: cpu is covered twice",
    ),
    "a flavour in two groups": (
        {"resourceGroups": [*quotas(("a", {})), *quotas(("a", {}), covered=("memory",))]},
        "spec.resourceGroups[1].flavors[0].name: a is listed twice",
    ),
    "a flavour without one of the resources": (
        {"resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": quotas(("a", {}))[0]["flavors"]}]},
        "resources: are cpu, and the group covers cpu, memory",
    ),
    "no resources": ({"resourceGroups": [{"flavors": []}]}, "coveredResources: is empty"),
    "no flavours": ({"resourceGroups": [{"coveredResources": ["cpu"]}]}, "flavors: is empty"),
    "too many flavours": (
        {"resourceGroups": quotas(*((f"f{n}", {}) for n in range(257)))},
        "spec.resourceGroups: list 257 flavors",
    ),
    "a preference that cannot be": (
        {"flavorFungibility": {"preference": "PreemptionOverBorrowing"}},
        "spec.flavorFungibility.preference",
    ),
    "evictions to borrow without any to reclaim": (
        {"preemption": PREEMPTION},
        "borrowWithinCohort.policy: is LowerPriority, and reclaimWithinCohort is Never",
    ),
    "an unknown word": ({"stopPolicy": "Later"}, "spec.stopPolicy"),
    "a weight below nothing": ({"fairSharing": {"weight": "-1"}}, "spec.fairSharing.weight"),
    "no weight": ({"fairSharing": {"weight": "heavy"}}, "spec.fairSharing.weight"),
}


@pytest.mark.parametrize(("spec", "part"), BAD.values(), ids=BAD)
def test_one_sentence_for_what_is_wrong(spec: dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigurationFault) as fault:
        cluster_queue(source(**spec))
    assert str(fault.value).startswith("ClusterQueue team: ") and part in str(fault.value)
    assert "\n" not in str(fault.value)


def test_what_is_not_acted_on() -> None:
    told = list(unmet(source(admissionChecks=["a"], concurrentAdmissionPolicy={"x": 1})))
    assert [each.partition(":")[0] for each in told] == ["spec.admissionChecks", "spec.concurrentAdmissionPolicy"]
    assert not list(unmet(source()))


def test_how_it_shares() -> None:
    assert shares_fairly(source(fairSharing={})) and not shares_fairly(source())
    mode = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    assert cluster_queue(source(admissionScope=mode)).by_submission
    assert not cluster_queue(source(admissionScope={"admissionMode": "NoAdmissionFairSharing"})).by_submission
