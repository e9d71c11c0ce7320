"""Volcano's PodGroup as a gang."""

from __future__ import annotations

from typing import Any

import pytest

from kube.dialects.gangs.membership import GangDefaults
from kube.dialects.gangs.volcano import unmet, volcano_gang
from kube.objects import Metadata, VolcanoPodGroup, VolcanoPodGroupStatus
from model.resources import ResourceVector
from model.workload import Gang, GangMode, GangPhase, GangSource, GangSpec, MatchPolicy, TopologyLevel

WHERE = "PodGroup.scheduling.volcano.sh ns/g"


def group(annotations: dict[str, str] | None = None, **spec: Any) -> VolcanoPodGroup:
    return VolcanoPodGroup(Metadata("g", "ns", "u1", annotations=annotations), spec)


def spec_of(**fields: Any) -> GangSpec:
    return GangSpec(**{"min_member": 1, "match": MatchPolicy.WAITING_AND_RUNNING, **fields})


def test_all_fields() -> None:
    told = volcano_gang(
        group(
            minMember=4,
            minTaskMember={"worker": 3, "master": 1},
            queue="research",
            priorityClassName="high",
            minResources={"cpu": "128", "nvidia.com/gpu": 32},
        ),
        GangDefaults(90.0),
    )
    assert told == Gang(
        "ns",
        "g",
        spec_of(min_member=4, timeout_seconds=90.0, priority_class="high", tasks=(("master", 1), ("worker", 3))),
        uid="u1",
        source=GangSource.VOLCANO,
        queue="research",
        min_resources=ResourceVector({"cpu": 128_000, "nvidia.com/gpu": 32}),
    )


CASES: dict[str, tuple[VolcanoPodGroup, GangSpec]] = {
    "a minimum": (group(minMember=2), spec_of(min_member=2)),
    "no minimum holds nobody back": (group(), spec_of(mode=GangMode.NON_STRICT)),
    "a minimum of 0": (group(minMember=0), spec_of(mode=GangMode.NON_STRICT)),
    "tasks of nothing": (group(minMember=2, minTaskMember={"a": 0, "b": 2}), spec_of(min_member=2, tasks=(("b", 2),))),
    "tasks that want more than the whole": (group(minMember=2, minTaskMember={"a": 3}), spec_of(min_member=2)),
    "a topology, as other PodGroups have it": (
        group({"sublet.dev/required-topology": "rack"}, minMember=2),
        spec_of(min_member=2, topology=(TopologyLevel("rack", True),)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_definition(case: str) -> None:
    source, wanted = CASES[case]
    assert volcano_gang(source).spec == wanted


BAD: dict[str, tuple[Any, str]] = {
    "no object": ([], "spec: is a list (expected an object)"),
    "a minimum below 0": ({"minMember": -1}, "spec.minMember: is -1 (expected a whole number >= 0)"),
    "a minimum that is a text": ({"minMember": "2"}, "spec.minMember: is '2'"),
    "an amount that is none": ({"minResources": {"cpu": "x"}}, "spec.minResources.cpu: 'x' is not a quantity"),
    "too many tasks": (
        {"minMember": 100, "minTaskMember": {str(i): 1 for i in range(65)}},
        "spec.minTaskMember: names 65 tasks (name at most 64)",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_a_problem(case: str) -> None:
    """Its pods wait, and say so."""
    spec, words = BAD[case]
    gang = volcano_gang(VolcanoPodGroup(Metadata("g", "ns"), spec))
    assert gang.spec.problem.startswith(f"{WHERE}: {words}") and gang.spec.min_member == 0


def test_another_controller_s_status_is_no_matter() -> None:
    """What its phase proves is read where the status is kept."""
    told = VolcanoPodGroup(Metadata("g", "ns"), {"minMember": 1}, VolcanoPodGroupStatus("Running", 1))
    assert volcano_gang(told).phase is GangPhase.UNSET


def test_what_nobody_acts_on() -> None:
    found = list(unmet(group(networkTopology={"mode": "hard"}, subGroupPolicy=[{"name": "a"}], minMember=2)))
    assert [each.partition(":")[0] for each in found] == ["spec.networkTopology", "spec.subGroupPolicy"]
    assert "sublet.dev/required-topology" in found[0] and list(unmet(group(minMember=2))) == []
