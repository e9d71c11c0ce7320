"""Labels and annotations of gangs."""

from __future__ import annotations

import msgspec
import pytest

from kube.dialects.gangs import membership
from kube.dialects.gangs.membership import GangDefaults, gang_of, rank_of
from kube.objects import Metadata, SchedulingGroup
from model.workload import GangMembership, GangMode, GangSource, GangSpec, MatchPolicy, TopologyLevel

GANG = "gang.scheduling.koordinator.sh/"
LABEL = "pod-group.scheduling.sigs.k8s.io"
GROUP = SchedulingGroup("upstream")


def metadata(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Metadata:
    return Metadata(name="p", namespace="ns", labels=labels, annotations=annotations)


# labels, annotations -> name, source
PRECEDENCE: dict[str, tuple[dict[str, str], dict[str, str], str, GangSource]] = {
    "the PodGroup label": ({LABEL: "g", LABEL + "/name": "l"}, {GANG + "name": "a"}, "g", GangSource.POD_GROUP),
    "the lightweight label": ({LABEL + "/name": "l"}, {GANG + "name": "a"}, "l", GangSource.ANNOTATION),
    "the annotation": ({}, {GANG + "name": "a"}, "a", GangSource.ANNOTATION),
    "the spec": ({}, {}, "upstream", GangSource.UPSTREAM),
}


@pytest.mark.parametrize(("labels", "annotations", "name", "source"), PRECEDENCE.values(), ids=PRECEDENCE.keys())
def test_which_word_counts(labels: dict[str, str], annotations: dict[str, str], name: str, source: GangSource) -> None:
    """PodGroup label, lightweight label, annotation, spec.schedulingGroup."""
    found = gang_of(metadata(labels, annotations), GROUP)
    assert found is not None
    assert (found.key, found.source, found.spec is None) == (f"ns/{name}", source, source is not GangSource.ANNOTATION)


KUEUE = "kueue.x-k8s.io/pod-group-"
OF_KUEUE: dict[str, tuple[dict[str, str], GangSpec]] = {
    "all of them": ({KUEUE + "total-count": "3"}, GangSpec(3)),
    "those that are there": ({KUEUE + "total-count": "3", KUEUE + "fast-admission": "true"}, GangSpec(1)),
    "how many is not said": (
        {},
        GangSpec(0, problem=f"annotation {KUEUE}total-count is missing; set it to the number of members needed"),
    ),
}


@pytest.mark.parametrize(("annotations", "spec"), OF_KUEUE.values(), ids=OF_KUEUE)
def test_a_pod_group_of_kueue(annotations: dict[str, str], spec: GangSpec) -> None:
    """Its label names a gang of as many pods as its annotation says; any other word on the pod counts before."""
    found = gang_of(metadata({KUEUE + "name": "g"}, annotations))
    assert found == GangMembership("ns", "g", GangSource.ANNOTATION, spec)
    before = gang_of(metadata({KUEUE + "name": "g", LABEL: "mine"}, annotations))
    assert before is not None and before.name == "mine"


def test_no_gang() -> None:
    """A pod that names no gang is alone."""
    assert gang_of(metadata({"app": "x"}), SchedulingGroup()) is None


ANNOTATED: dict[str, tuple[dict[str, str], GangSpec]] = {
    "defaults": ({"min-available": "3"}, GangSpec(3)),
    "everything": (
        {
            "min-available": "2",
            "mode": "NonStrict",
            "waiting-time": "1m30s",
            "match-policy": "only-waiting",
            "groups": '["ns/h", "other/i"]',
        },
        GangSpec(2, GangMode.NON_STRICT, 90.0, "", MatchPolicy.ONLY_WAITING, ("ns/g", "ns/h", "other/i")),
    ),
    "what is illegal falls back": (
        {
            "min-available": "2",
            "mode": "strictish",
            "waiting-time": "soon",
            "match-policy": "some",
            "groups": "[ns/h",
        },
        GangSpec(2),
    ),
    "zero waiting time falls back": ({"min-available": "2", "waiting-time": "0s"}, GangSpec(2)),
    "a group of itself": ({"min-available": "2", "groups": '["ns/g"]'}, GangSpec(2)),
    "a group without namespaces": (
        {"min-available": "2", "groups": '["g", "h", "h"]'},
        GangSpec(2, groups=("ns/g", "ns/h")),
    ),
    "a topology": (
        {
            "min-available": "2",
            "network-topology-spec": '{"gatherStrategy": [{"layer": "rack", "strategy": "MustGather"}]}',
        },
        GangSpec(2, topology=(TopologyLevel("rack", True),)),
    ),
}


@pytest.mark.parametrize(("annotations", "expected"), ANNOTATED.values(), ids=ANNOTATED.keys())
def test_annotated_gang(annotations: dict[str, str], expected: GangSpec) -> None:
    """Annotations as Koordinator reads them."""
    found = gang_of(metadata(None, {GANG + "name": "g", **{GANG + k: v for k, v in annotations.items()}}))
    assert found is not None and found.spec == expected


@pytest.mark.parametrize("name", ["a,b", "x,other/workers", "a/b", "a b", "-a", "\u00e4", "a" * 254, "a\n"])
def test_a_text_that_is_no_name(name: str) -> None:
    """An annotation may hold commas, which separate the gangs of a group; no other pod is drawn in."""
    found = gang_of(metadata(None, {GANG + "name": name, GANG + "min-available": "2"}))
    assert found is not None and found.spec is not None
    assert (found.key, found.spec.groups) == ("ns/?p", ())
    assert found.spec.problem.startswith(f"annotation {GANG}name is {name[:60]!r}; write letters")


@pytest.mark.parametrize("listed", ["ns/h,other/i", "h,other/i", "other/i/j", "other/", "/i"])
def test_a_group_that_lists_no_names(listed: str) -> None:
    """As any list that cannot be read: the gang goes alone."""
    groups = msgspec.json.encode(["ns/h", listed]).decode()
    found = gang_of(metadata(None, {GANG + "name": "g", GANG + "min-available": "2", GANG + "groups": groups}))
    assert found is not None and found.spec == GangSpec(2)


def test_a_group_of_too_many_gangs() -> None:
    """It is held, and says so; each gang of a group is looked at whenever one of them changes."""
    for number, problem in ((63, ""), (64, f"Gang ns/g: annotation {GANG}groups names 65 gangs; name at most 64")):
        groups = msgspec.json.encode([f"ns/g{other}" for other in range(number)]).decode()
        told = {GANG + "name": "g", GANG + "min-available": "2", GANG + "groups": groups}
        found = gang_of(metadata(None, told))
        assert found is not None and found.spec is not None
        assert (found.spec.problem, len(found.spec.groups)) == (problem, 0 if problem else 64)


def test_the_match_policys_other_spelling() -> None:
    """scheduler-plugins' prefix; Koordinator's own comes first."""
    alias = {LABEL + "/match-policy": "waiting-and-running"}
    told = {GANG + "name": "g", GANG + "min-available": "2", **alias}
    found = gang_of(metadata(None, told))
    assert found is not None and found.spec is not None and found.spec.match is MatchPolicy.WAITING_AND_RUNNING
    found = gang_of(metadata(None, told | {GANG + "match-policy": "only-waiting"}))
    assert found is not None and found.spec is not None and found.spec.match is MatchPolicy.ONLY_WAITING


def test_defaults_of_the_scheduler() -> None:
    """They stand in for what the gang does not say."""
    defaults = GangDefaults(30.0, MatchPolicy.ONLY_WAITING)
    found = gang_of(metadata(None, {GANG + "name": "g", GANG + "min-available": "2"}), None, defaults)
    assert found is not None and found.spec == GangSpec(2, timeout_seconds=30.0, match=MatchPolicy.ONLY_WAITING)


@pytest.mark.parametrize("minimum", [None, "0", "-1", "two", "1.5"])
def test_annotated_gang_without_usable_minimum(minimum: str | None) -> None:
    """The problem names the annotation and the fix."""
    annotations = {GANG + "name": "g"} | ({GANG + "min-available": minimum} if minimum else {})
    found = gang_of(metadata(None, annotations))
    assert found is not None and found.spec is not None
    assert "gang.scheduling.koordinator.sh/min-available" in found.spec.problem


def test_a_long_text_is_not_repeated_to_every_member() -> None:
    """An annotation holds up to 256 KiB, and each waiting member is told the problem."""
    found = gang_of(metadata(None, {GANG + "name": "g", GANG + "min-available": "x" * 200_000}))
    assert found is not None
    assert found.spec is not None
    assert len(found.spec.problem) < 250


def test_a_topology_that_cannot_be_read_is_a_problem() -> None:
    """Members are not spread by guesswork."""
    told = {GANG + "name": "g", GANG + "min-available": "2", GANG + "network-topology-spec": "{"}
    found = gang_of(metadata(None, told))
    assert found is not None and found.spec is not None
    assert found.spec.problem.startswith(f"Gang ns/g: annotation {GANG}network-topology-spec: cannot be read")


INDEX, COMPLETION, ORDINAL = (
    GANG + "network-topology-index",
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
)


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({}, {}, -1),
        ({}, {INDEX: "3"}, 3),
        ({}, {COMPLETION: "7"}, 7),
        ({COMPLETION: "7"}, {}, 7),
        ({ORDINAL: "2"}, {}, 2),
        ({COMPLETION: "7"}, {INDEX: "3"}, 3),
        ({}, {INDEX: "-3"}, -1),
        ({}, {INDEX: "first"}, -1),
    ],
)
def test_rank(labels: dict[str, str], annotations: dict[str, str], expected: int) -> None:
    """The topology's index before the Job's before the StatefulSet's."""
    assert rank_of(labels, annotations) == expected


@pytest.mark.parametrize(
    ("annotations", "seconds"),
    [
        ({}, 0.0),
        ({membership.WAITING_TIMES[0]: "1h30m"}, 5400.0),
        ({membership.WAITING_TIMES[1]: "30s"}, 30.0),
        ({membership.WAITING_TIMES[0]: "1m", membership.WAITING_TIMES[1]: "30s"}, 60.0),
        ({membership.WAITING_TIMES[0]: "soon"}, 0.0),
    ],
)
def test_how_long_a_gang_waits(annotations: dict[str, str], seconds: float) -> None:
    """What is no duration says nothing (misread tells it)."""
    assert membership.wait_seconds(annotations) == seconds
    assert membership.spec_of(1, "a/b", annotations).wait_seconds == seconds
