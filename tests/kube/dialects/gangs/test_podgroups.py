"""PodGroup objects of both kinds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kube.dialects.gangs.membership import GangDefaults
from kube.dialects.gangs.podgroups import (
    PARTIAL_SINCE,
    WHOLE_SINCE,
    initially_scheduled,
    partially_bound,
    partially_bound_since,
    phase,
    pod_group,
    read_times,
    upstream_gang,
)
from kube.objects import (
    Condition,
    Metadata,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
    UpstreamPodGroup,
    UpstreamPodGroupStatus,
)
from model.condition import ConditionType
from model.priority import PreemptionPolicy
from model.workload import Gang, GangMode, GangPhase, GangSource, GangSpec, GangTimes, MatchPolicy, TopologyLevel

GANG = "gang.scheduling.koordinator.sh/"


def metadata(annotations: dict[str, str] | None = None) -> Metadata:
    return Metadata(name="p", namespace="ns", annotations=annotations)


@pytest.mark.parametrize(
    ("minimum", "told"),
    [(0, "is 0"), (-2, "is -2"), (None, "is missing"), ("x", "is 'x'"), (1.5, "is 1.5"), (True, "is True")],
)
def test_pod_group_without_usable_minimum(minimum: Any, told: str) -> None:
    """minMember 0 is one clear sentence with object, field and fix."""
    gang = pod_group(PodGroup(metadata(), PodGroupSpec(min_member=minimum)))
    assert gang.spec.problem == f"PodGroup ns/p: spec.minMember {told}; write a whole number of 1 or more"


def test_pod_group() -> None:
    """minMember, timeout and the annotations of the object."""
    told = {GANG + "mode": "NonStrict", GANG + "groups": '["ns/q"]', "sublet.dev/required-topology": "rack"}
    group = PodGroup(metadata(told), PodGroupSpec(3, 60))
    assert pod_group(group).spec == GangSpec(
        3, GangMode.NON_STRICT, 60.0, groups=("ns/p", "ns/q"), topology=(TopologyLevel("rack", True),)
    )


@pytest.mark.parametrize("seconds", [None, 0, -1, "60"])
def test_a_timeout_that_does_not_count(seconds: Any) -> None:
    """The default stands; waiting-time is for annotated gangs alone."""
    group = PodGroup(metadata({GANG + "waiting-time": "5s"}), PodGroupSpec(3, seconds))
    assert pod_group(group, GangDefaults(timeout_seconds=45.0)).spec.timeout_seconds == 45.0


def gang(**spec: Any) -> Gang:
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    body = {"metadata": {"namespace": "ns", "name": "p"}, "spec": policy | spec}
    return upstream_gang(msgspec.convert(body, UpstreamPodGroup))


USUAL = GangSpec(3, match=MatchPolicy.WAITING_AND_RUNNING)
UPSTREAM: dict[str, tuple[dict[str, Any], GangSpec]] = {
    "a gang": ({}, USUAL),
    "basic": (
        {"schedulingPolicy": {"basic": {}}},
        GangSpec(1, GangMode.NON_STRICT, match=MatchPolicy.WAITING_AND_RUNNING),
    ),
    "priority": (
        {"priority": 9000, "preemptionPolicy": "Never"},
        msgspec.structs.replace(USUAL, priority=9000, preemption_policy=PreemptionPolicy.NEVER),
    ),
    "whole, as an object": ({"disruptionMode": {"all": {}}}, msgspec.structs.replace(USUAL, whole=True)),
    "whole, as a word": ({"disruptionMode": "PodGroup"}, msgspec.structs.replace(USUAL, whole=True)),
    "one by one": ({"disruptionMode": {"single": {}}}, USUAL),
    "topology": (
        {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
        msgspec.structs.replace(USUAL, topology=(TopologyLevel("rack", True),)),
    ),
}


@pytest.mark.parametrize(("spec", "expected"), UPSTREAM.values(), ids=UPSTREAM.keys())
def test_upstream_gang(spec: dict[str, Any], expected: GangSpec) -> None:
    """Kubernetes' own PodGroup, v1alpha2 to v1beta1."""
    found = gang(**spec)
    assert (found.key, found.source, found.spec) == ("ns/p", GangSource.UPSTREAM, expected)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"schedulingPolicy": {}}, "PodGroup ns/p: spec.schedulingPolicy is empty; set gang.minCount or basic"),
        (
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "PodGroup ns/p: spec.schedulingPolicy.gang.minCount is 0; write a whole number of 1 or more",
        ),
    ],
)
def test_upstream_gang_that_says_nothing(spec: dict[str, Any], told: str) -> None:
    """Object, field and fix; its own priority holds for pods of it that run."""
    found = gang(**spec, priority=9000, disruptionMode="PodGroup").spec
    assert found == GangSpec(0, problem=told, priority=9000, whole=True)


NOW, THEN = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
KIND = "PodGroupInitiallyScheduled"


def told(status: str, reason: str, message: str, since: str = THEN) -> Condition:
    return Condition(KIND, status, reason, message, last_transition_time=since)


CONDITIONS: dict[str, tuple[list[Condition], bool, str, Condition | None]] = {
    "first refusal": ([], False, "no room", told("False", "Unschedulable", "no room", NOW)),
    "the same refusal": ([told("False", "Unschedulable", "no room")], False, "no room", None),
    "another refusal": (
        [told("False", "Unschedulable", "no room")],
        False,
        "too few",
        told("False", "Unschedulable", "too few"),
    ),
    "placed": ([told("False", "Unschedulable", "no room")], True, "", told("True", "Scheduled", "", NOW)),
    "True is final": ([told("True", "Scheduled", "")], False, "gone", None),
}


@pytest.mark.parametrize(("before", "placed", "message", "expected"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_the_condition_to_write(
    before: list[Condition], placed: bool, message: str, expected: Condition | None
) -> None:
    """One, and only where it says something new."""
    assert initially_scheduled(before, placed, message, NOW) == expected


def test_the_note_on_a_gang_bound_in_part_comes_and_goes() -> None:
    """Written once, read back after a restart, and ended where it stood; never written where there was none."""
    assert partially_bound([], False, NOW) is None
    begun = partially_bound([], True, "2026-01-01T00:00:00Z")
    assert begun is not None and (begun.status, begun.type) == ("True", ConditionType.PARTIALLY_BOUND)
    assert partially_bound([begun], True, NOW) is None
    assert partially_bound_since([begun]) == 1767225600.0
    over = partially_bound([begun], False, NOW)
    assert over is not None and over.status == "False" and partially_bound_since([over]) == 0.0
    assert partially_bound([over], False, NOW) is None


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("0001-01-01T00:00:00+14:00", 0.0),
        ("1969-12-31T23:59:59Z", 0.0),
        ("2026-01-01T00:00:00Z", 1767225600.0),
        ("9999-12-31T23:59:59-14:00", 253402300799.0),
    ],
)
def test_whoever_wrote_a_time_it_can_be_written_again(time: str, seconds: float) -> None:
    """Annotations and status are their users' to write, too; a time outside UTC's years ended the scheduler."""
    told = read_times(PodGroup(metadata({PARTIAL_SINCE: time, WHOLE_SINCE: time})))[0]
    assert (told.partial_seconds, told.whole_seconds) == (seconds, seconds)
    assert (
        partially_bound_since([Condition(ConditionType.PARTIALLY_BOUND, "True", last_transition_time=time)]) == seconds
    )
    assert datetime.fromtimestamp(seconds, UTC)


@pytest.mark.parametrize("time", [None, "", "yesterday"])
def test_a_note_without_a_readable_time_is_none(time: str | None) -> None:
    """Somebody else wrote it."""
    assert partially_bound_since([Condition(ConditionType.PARTIALLY_BOUND, "True", last_transition_time=time)]) == 0.0


def test_what_a_podgroup_of_kubernetes_says_of_its_past() -> None:
    """It was scheduled once; or it is bound in part."""
    told = UpstreamPodGroupStatus([Condition(ConditionType.GROUP_SCHEDULED, "True")])
    assert upstream_gang(UpstreamPodGroup(metadata(), status=told)).phase == "Scheduled"
    begun = partially_bound([], True, "2026-01-01T00:00:00Z")
    assert begun is not None
    found = upstream_gang(UpstreamPodGroup(metadata(), status=UpstreamPodGroupStatus([begun])))
    assert (found.phase, found.partial_seconds) == ("", 1767225600.0)


@pytest.mark.parametrize(
    ("phase", "whole", "expected"),
    [
        ("Scheduling", None, (1767225600.0, 0.0)),
        ("Scheduled", None, (0.0, 0.0)),
        ("Running", None, (0.0, 0.0)),
        ("Scheduling", "2026-01-01T00:01:00+00:00", (0.0, 1767225660.0)),
    ],
)
def test_marks_beside_a_phase(phase: str, whole: str | None, expected: tuple[float, float]) -> None:
    """A phase that says that the minimum was bound outdates the mark of a part; the mark of a whole is for good."""
    annotations = {PARTIAL_SINCE: "2026-01-01T00:00:00Z"} | ({WHOLE_SINCE: whole} if whole else {})
    gang = pod_group(PodGroup(metadata(annotations), PodGroupSpec(2), PodGroupStatus(phase)))
    assert (gang.partial_seconds, gang.whole_seconds) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [(each.value, each) for each in GangPhase] + [("Odd", GangPhase.UNKNOWN)]
)
def test_phase(text: str, expected: GangPhase) -> None:
    """A phase that nobody here knows is none of the others."""
    assert phase(PodGroupStatus(text)) is expected


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-01-01", "2026-01-01T00:00:00", "1767225600", "1969-12-31T23:59:59Z", "x" * 100_000]
)
def test_an_unreadable_mark_counts_as_none(text: str) -> None:
    """Only itself: the other holds, and so does the gang."""
    group = PodGroup(metadata({PARTIAL_SINCE: text, WHOLE_SINCE: "2026-01-01T00:00:00Z"}), PodGroupSpec(2))
    found, problems = read_times(group)
    told = f"PodGroup ns/p: metadata.annotations[{PARTIAL_SINCE}] is {text[:60]!r}; remove it or write a time such as"
    assert (found, [problem.startswith(told) for problem in problems]) == (GangTimes(0.0, 1767225600.0), [True])
    assert pod_group(group).spec.problem == ""
