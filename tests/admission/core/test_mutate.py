"""What becomes of a pod that is created, profile by profile."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from admission_builders import BATCH, BATCH_SPEC, COLOCATED, create, profile, raw_container, raw_pod, resources
from hypothesis import given
from hypothesis import strategies as st

from admission.core.mutate import ANNOTATION_DRAW, MutationPolicy, PodFacts, created
from admission.core.resourcespec import ANNOTATION
from kube.podmerge import merge_pod
from model.profile import ColocationProfile
from model.qos import QoSClass
from model.quantity import parse_millis, parse_units
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY

LENT = {BATCH_CPU: "2000", BATCH_MEMORY: "4Gi"}


def test_an_unchanged_job_becomes_batch() -> None:
    """S27 and S28: class, priority, scheduler, labels and lent resources, and no native ones left."""
    result = create(raw_pod())
    assert result.refusal == ""
    assert result.pod["metadata"]["labels"] == {
        "app-type": "batch",
        "koordinator.sh/mutated": "true",
        "koordinator.sh/qosClass": "BE",
    }
    spec = result.pod["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == (
        "koord-batch",
        5000,
        "PreemptLowerPriority",
    )
    assert spec["schedulerName"] == "koord-scheduler"
    assert resources(result.pod) == [{"requests": LENT, "limits": LENT}]
    assert [step.reason for step in result.steps] == [Reason.PROFILE_APPLIED, Reason.RESOURCES_LENT]


def test_the_pod_given_stays_as_it_was() -> None:
    """What is compared with the result must be what came in."""
    pod = raw_pod(raw_container(requests={"cpu": "1"}), overhead={"cpu": "1"})
    before = copy.deepcopy(pod)
    create(pod)
    assert pod == before


SELECTED: dict[str, tuple[ColocationProfile, dict[str, Any], bool]] = {
    "both selectors match": (BATCH, {}, True),
    "the namespace does not": (BATCH, {"namespace_labels": {}}, False),
    "no selector at all": (profile(qosClass="BE"), {"namespace_labels": {}}, True),
    "an empty selector": (profile(selector={}, namespaceSelector={}, qosClass="BE"), {}, True),
    "an expression": (
        profile(selector={"matchExpressions": [{"key": "app-type", "operator": "NotIn", "values": ["web"]}]}),
        {},
        True,
    ),
    "an unknown namespace": (BATCH, {"namespace_labels": None}, False),
    "an unknown namespace nobody asks about": (profile(qosClass="BE"), {"namespace_labels": None}, True),
    "a selector that cannot be read": (
        profile(selector={"matchExpressions": [{"key": "a", "operator": "Like"}]}),
        {},
        False,
    ),
    "In without values": (profile(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}), {}, False),
    "a namespace selector that cannot be read": (profile(namespaceSelector="all"), {}, False),
    "a probability that cannot be read": (profile(probability="often"), {}, False),
    "a spec that is no object": (ColocationProfile("x", fault="is not an object"), {}, False),
}


@pytest.mark.parametrize(("one", "facts", "applied"), SELECTED.values(), ids=SELECTED)
def test_selection(one: ColocationProfile, facts: dict[str, Any], applied: bool) -> None:
    """A profile that cannot be read, or a namespace that is not known, matches nothing: never everything."""
    reasons = [step.reason for step in create(raw_pod(), one, **facts).steps]
    assert (Reason.PROFILE_APPLIED in reasons) is applied


def test_a_profile_that_cannot_be_read_is_told_to_whom_it_could_concern() -> None:
    """The pod's writer learns why nothing happened; a pod of another selection is left in peace."""
    broken = profile(selector={"matchLabels": {"app-type": "batch"}}, namespaceSelector={"matchExpressions": [{}]})
    (step,) = create(raw_pod(), broken).steps
    assert step.reason is Reason.PROFILE_UNREADABLE
    assert step.detail.startswith("ClusterColocationProfile batch: spec.namespaceSelector.matchExpressions[0]")
    assert create(raw_pod(labels={"app-type": "web"}), broken).steps == ()


DRAWN = {
    "none": (0, 0, False),
    "none of none": ("0%", 99, False),
    "just in": (30, 29, True),
    "just out": (30, 30, False),
    "one percent": ("1%", 0, True),
    "one percent is not two": ("1%", 1, False),
    "all": (100, 99, True),
    "all without saying": (None, 99, True),
    "all but one": ("99%", 98, True),
    "that one": ("99%", 99, False),
}


@pytest.mark.parametrize(("probability", "draw", "applied"), DRAWN.values(), ids=DRAWN)
def test_probability(probability: Any, draw: int, applied: bool) -> None:
    """p percent of the hundred draws are in, and not one more."""
    result = create(raw_pod(), profile(probability=probability, qosClass="BE"), draw=draw)
    assert (Reason.PROFILE_APPLIED in [step.reason for step in result.steps]) is applied


@pytest.mark.parametrize("percent", [1, 30, 50, 99])
def test_the_share_is_exact(percent: int) -> None:
    """Over all draws exactly p of 100 pods get the profile."""
    one = profile(probability=percent, labels={"drawn": "yes"})
    hits = [draw for draw in range(100) if "drawn" in create(raw_pod(), one, draw=draw).pod["metadata"]["labels"]]
    assert len(hits) == percent


def test_a_draw_holds_when_the_pod_comes_by_again() -> None:
    """The number is written on the pod, so that being asked twice does not give two chances."""
    one = profile(probability=50, labels={"drawn": "yes"})
    first = create(raw_pod(), one, draw=70).pod
    assert first["metadata"]["annotations"] == {ANNOTATION_DRAW: "70"}
    assert create(first, one, draw=10).pod == first


def test_a_pod_that_was_not_drawn_keeps_its_resources() -> None:
    """Selected is not applied: cpu and memory stay as they are."""
    result = create(raw_pod(), profile(probability=10, **BATCH_SPEC), draw=10)
    assert resources(result.pod) == resources(raw_pod())
    assert [step.reason for step in result.steps] == [Reason.PROFILE_NOT_DRAWN]


MAPPED: dict[str, tuple[dict[str, Any], str, dict[str, str]]] = {
    "labels": ({"labels": {"a": "1"}}, "labels", {"a": "1", "app-type": "batch"}),
    "labels overwrite": ({"labels": {"app-type": "x"}}, "labels", {"app-type": "x"}),
    "annotations": ({"annotations": {"a": "1"}}, "annotations", {"a": "1", "old": "kept"}),
    "label keys": ({"labelKeysMapping": {"app-type": "kind"}}, "labels", {"app-type": "batch", "kind": "batch"}),
    "label keys see new labels": (
        {"labels": {"n": "1"}, "labelKeysMapping": {"n": "m"}},
        "labels",
        {"app-type": "batch", "n": "1", "m": "1"},
    ),
    "a label key that is not there makes none": (
        {"labelKeysMapping": {"nope": "kind"}},
        "labels",
        {"app-type": "batch"},
    ),
    "annotation keys": ({"annotationKeysMapping": {"old": "new"}}, "annotations", {"old": "kept", "new": "kept"}),
    "an annotation key that is not there": ({"annotationKeysMapping": {"x": "y"}}, "annotations", {"old": "kept"}),
    "suffixes": ({"labelSuffixes": {"app-type": "-low"}}, "labels", {"app-type": "batch-low"}),
    "a suffix needs its label": ({"labelSuffixes": {"nope": "-low"}}, "labels", {"app-type": "batch"}),
    "suffixes come after key mappings": (
        {"labelKeysMapping": {"app-type": "kind"}, "labelSuffixes": {"kind": "-x"}},
        "labels",
        {"app-type": "batch", "kind": "batch-x"},
    ),
    "QoS class": ({"qosClass": "LS"}, "labels", {"app-type": "batch", "koordinator.sh/qosClass": "LS"}),
    "QoS class beats a label": (
        {"qosClass": "LS", "labels": {"koordinator.sh/qosClass": "BE"}},
        "labels",
        {"app-type": "batch", "koordinator.sh/qosClass": "LS"},
    ),
    "sub-priority": ({"koordinatorPriority": 1111}, "labels", {"app-type": "batch", "koordinator.sh/priority": "1111"}),
    "sub-priority 0": ({"koordinatorPriority": 0}, "labels", {"app-type": "batch", "koordinator.sh/priority": "0"}),
    "patch": ({"patch": {"metadata": {"labels": {"p": "1"}}}}, "labels", {"app-type": "batch", "p": "1"}),
    "the patch has the last word": (
        {"qosClass": "LS", "patch": {"metadata": {"labels": {"koordinator.sh/qosClass": "BE"}}}},
        "labels",
        {"app-type": "batch", "koordinator.sh/qosClass": "BE"},
    ),
}


@pytest.mark.parametrize(("spec", "field", "result"), MAPPED.values(), ids=MAPPED)
def test_labels_and_annotations(spec: dict[str, Any], field: str, result: dict[str, str]) -> None:
    """Each field of a profile does what it says, in Koordinator's order."""
    pod = create(raw_pod(annotations={"old": "kept"}), profile(**spec)).pod
    found = {key: value for key, value in pod["metadata"][field].items() if key != ANNOTATION}
    assert found == result


def test_later_names_overwrite_earlier_ones() -> None:
    """Profiles are applied in order of their names, whatever order they come in."""
    profiles = [profile(name, schedulerName=name, labels={"by": name}) for name in ("b", "c", "a")]
    result = create(raw_pod(), *profiles)
    assert [step.profile for step in result.steps] == ["a", "b", "c"]
    assert (result.pod["spec"]["schedulerName"], result.pod["metadata"]["labels"]["by"]) == ("c", "c")


def test_a_profile_does_not_select_by_what_another_wrote() -> None:
    """The labels that the pod came with decide, so the order of names decides nothing about who is in."""
    result = create(
        raw_pod(labels={}), profile("a", labels={"x": "1"}), profile("b", selector={"matchLabels": {"x": "1"}})
    )
    assert [step.profile for step in result.steps] == ["a"]


def test_priority_class() -> None:
    """Number and policy come with the class, since the API server refuses a pod with others."""
    spec = create(raw_pod(), profile(priorityClassName="never")).pod["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == ("never", 5500, "Never")


REFUSED = {
    "a class that does not exist": (profile(priorityClassName="gone"), raw_pod(), "create PriorityClass gone"),
    "a patch that cannot be applied": (
        profile(patch={"spec": {"containers": [{"image": "x"}]}}),
        raw_pod(),
        "profile batch: spec.patch cannot be applied",
    ),
    "a quantity that is none": (
        BATCH,
        raw_pod(raw_container(requests={"cpu": "lots"})),
        "container main: requests.cpu",
    ),
    "several containers that share": (
        BATCH,
        raw_pod(raw_container("a"), raw_container("b"), resources={"limits": {"cpu": "2"}}),
        "write requests and limits at each container",
    ),
    "an init container that shares": (
        BATCH,
        raw_pod(raw_container("a"), initContainers=[raw_container("i")], resources={"limits": {"cpu": "2"}}),
        "write requests and limits at each container",
    ),
}


@pytest.mark.parametrize(("one", "pod", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals(one: ColocationProfile, pod: dict[str, Any], words: str) -> None:
    """A pod that its profile cannot be applied to is not created half made, and one sentence says what to do."""
    result = create(pod, one)
    assert words in result.refusal and result.pod == pod


BOTH = {"cpu": "2", "memory": "4Gi"}
REWRITTEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "milli": ({"requests": {"cpu": "500m"}}, {"requests": {BATCH_CPU: "500"}}),
    "a fraction": ({"requests": {"cpu": "0.25"}}, {"requests": {BATCH_CPU: "250"}}),
    "less than a milli rounds up": ({"requests": {"cpu": "1u"}}, {"requests": {BATCH_CPU: "1"}}),
    "memory as written": ({"requests": {"memory": "1500M"}}, {"requests": {BATCH_MEMORY: "1500M"}}),
    "a limit alone is a request too": (
        {"limits": {"cpu": "1", "memory": "1Gi"}},
        {
            "limits": {BATCH_CPU: "1000", BATCH_MEMORY: "1Gi"},
            "requests": {BATCH_CPU: "1000", BATCH_MEMORY: "1Gi"},
        },
    ),
    "a request alone stays alone": ({"requests": {"cpu": "1"}}, {"requests": {BATCH_CPU: "1000"}}),
    "request below limit": (
        {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        {"requests": {BATCH_CPU: "1000"}, "limits": {BATCH_CPU: "2000"}},
    ),
    "others stay": (
        {
            "requests": {"cpu": "1", "nvidia.com/gpu": "1", "ephemeral-storage": "1Gi"},
            "limits": {"nvidia.com/gpu": "1"},
        },
        {
            "requests": {BATCH_CPU: "1000", "nvidia.com/gpu": "1", "ephemeral-storage": "1Gi"},
            "limits": {"nvidia.com/gpu": "1"},
        },
    ),
    "claims stay": (
        {"claims": [{"name": "x"}], "requests": {"cpu": "1"}},
        {"claims": [{"name": "x"}], "requests": {BATCH_CPU: "1000"}},
    ),
    "by hand": ({"requests": dict(LENT)}, {"requests": LENT}),
    "lent amounts beat a later default": (
        {"requests": {**LENT, "cpu": "100m"}, "limits": {"cpu": "200m"}},
        {"requests": LENT, "limits": {BATCH_CPU: "200"}},
    ),
    "nothing": ({}, {}),
}


@pytest.mark.parametrize(("before", "after"), REWRITTEN.values(), ids=REWRITTEN)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_rewriting(before: dict[str, Any], after: dict[str, Any], field: str) -> None:
    """cpu and memory are renamed wherever a container asks for them; nothing else is touched."""
    pod = raw_pod(raw_container("main"), initContainers=[raw_container("init")])
    pod["spec"][field][0]["resources"] = before
    assert resources(create(pod).pod, field) == [after]


def test_a_sidecar_is_rewritten_too() -> None:
    """A sidecar is an init container that stays."""
    pod = raw_pod(initContainers=[raw_container("proxy", requests={"cpu": "100m"}, restartPolicy="Always")])
    (sidecar,) = create(pod).pod["spec"]["initContainers"]
    assert sidecar["resources"] == {"requests": {BATCH_CPU: "100"}} and sidecar["restartPolicy"] == "Always"


def test_ephemeral_containers_are_left_alone() -> None:
    """They may have no resources."""
    pod = raw_pod(ephemeralContainers=[{"name": "debug"}])
    assert create(pod).pod["spec"]["ephemeralContainers"] == [{"name": "debug"}]


OVERHEAD = {
    "its own": ({"overhead": {"cpu": "1", "memory": "2Gi"}}, {BATCH_CPU: "1000", BATCH_MEMORY: "2Gi"}),
    "of a RuntimeClass": ({"overhead": {"cpu": "1"}, "runtimeClassName": "kata"}, {"cpu": "1"}),
}


@pytest.mark.parametrize(("spec", "result"), OVERHEAD.values(), ids=OVERHEAD)
def test_overhead(spec: dict[str, Any], result: dict[str, str]) -> None:
    """The API server refuses a pod whose overhead is not its RuntimeClass's, so that one stays."""
    assert create(raw_pod(**spec)).pod["spec"]["overhead"] == result


def test_what_a_pod_asks_for_as_a_whole_goes_to_its_only_container() -> None:
    """Kubernetes knows no lent resources at the pod's level; huge pages stay there."""
    whole = {"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}, "limits": {"cpu": "2", "hugepages-2Mi": "2Mi"}}
    spec = create(raw_pod(raw_container(), resources=whole)).pod["spec"]
    assert spec["containers"][0]["resources"] == {"requests": {BATCH_CPU: "1000"}, "limits": {BATCH_CPU: "2000"}}
    assert spec["resources"] == {"requests": {"hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}}


def test_nothing_is_left_of_pod_level_resources_that_moved() -> None:
    """An empty object there would be refused or mean something else."""
    assert "resources" not in create(raw_pod(raw_container(), resources={"limits": {"cpu": "2"}})).pod["spec"]


BANDS = {
    "mid by class": ({"priorityClassName": "koord-mid"}, "kubernetes.io/mid-cpu"),
    "batch by number": ({"priorityClassName": "never"}, BATCH_CPU),
    "batch by QoS class": ({"qosClass": "BE"}, BATCH_CPU),
    "batch by label": ({"labels": {"koordinator.sh/priority-class": "koord-batch"}}, BATCH_CPU),
    "the label beats the number": (
        {"labels": {"koordinator.sh/priority-class": "koord-mid"}, "priorityClassName": "koord-batch"},
        "kubernetes.io/mid-cpu",
    ),
    "prod": ({"priorityClassName": "koord-prod"}, "cpu"),
    "free": ({"labels": {"koordinator.sh/priority-class": "koord-free"}}, "cpu"),
    "none": ({"schedulerName": "x"}, "cpu"),
}


@pytest.mark.parametrize(("spec", "name"), BANDS.values(), ids=BANDS)
def test_the_priority_band_decides_the_name(spec: dict[str, Any], name: str) -> None:
    """Batch and mid have lent resources, the others keep cpu."""
    assert name in resources(create(raw_pod(), profile(**spec)).pod)[0]["requests"]


def test_a_profile_may_leave_resources_alone() -> None:
    """The annotation on any profile that was applied is enough."""
    skipping, undrawn = profile("z", skips=True), profile("z", skips=True, probability=0)
    assert resources(create(raw_pod(), BATCH, skipping).pod) == resources(raw_pod())
    assert resources(create(raw_pod(), BATCH, undrawn).pod) == [{"requests": LENT, "limits": LENT}]


def test_a_pod_that_no_profile_selects_is_left_alone() -> None:
    """However batch it is by its own words."""
    pod = raw_pod(labels={"koordinator.sh/qosClass": "BE"}, priority=5000)
    assert create(pod, namespace_labels={}).pod == pod


def test_switches() -> None:
    """Rewriting and the annotation can be switched off, as by Koordinator's gates."""
    facts = PodFacts((profile(qosClass="BE"),), COLOCATED, {}, 0)
    off = created(raw_pod(), facts, MutationPolicy(rewrite_resources=False, resource_spec=False), merge_pod)
    assert resources(off.pod) == resources(raw_pod()) and "annotations" not in off.pod["metadata"]
    default = created(raw_pod(), facts, MutationPolicy(), merge_pod)
    assert resources(default.pod) != resources(raw_pod()) and ANNOTATION in default.pod["metadata"]["annotations"]


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", BATCH_CPU, BATCH_MEMORY, "nvidia.com/gpu"]),
    st.sampled_from(["1", "2", "500", "3k", "1Gi"]),
    max_size=4,
)
containers = st.lists(st.builds(raw_container, st.just("x"), amounts, amounts), min_size=1, max_size=3)
specs = st.fixed_dictionaries(
    {},
    optional={
        "probability": st.integers(0, 100),
        "qosClass": st.sampled_from([each.value for each in QoSClass if each]),
        "priorityClassName": st.sampled_from(["koord-batch", "koord-mid", "koord-prod"]),
        "labelSuffixes": st.just({"team": "-s"}),
        "labelKeysMapping": st.just({"app-type": "kind"}),
        "annotations": st.just({"a": "b"}),
        "patch": st.just({"spec": {"tolerations": [{"key": "batch"}], "containers": [{"name": "x", "tty": True}]}}),
    },
)


@given(st.lists(containers, min_size=2, max_size=2), st.lists(specs, max_size=3), st.integers(0, 99))
def test_twice_is_once(inner: list[Any], written: list[dict[str, Any]], draw: int) -> None:
    """A pod that comes by again, as webhooks after ours make it, stays as it is; whatever is drawn then."""
    profiles = [profile(f"p{number}", **spec) for number, spec in enumerate(written)]
    pod = raw_pod(*inner[0], labels={"app-type": "batch", "team": "a"}, initContainers=inner[1])
    first = create(pod, *profiles, draw=draw)
    second = create(first.pod, *profiles, draw=99 - draw)
    assert second.pod == first.pod


@given(containers)
def test_no_amount_is_lost(inner: list[dict[str, Any]]) -> None:
    """For each resource of each container there is the lent amount that stood there, else the native one, renamed."""
    for before, after in zip(inner, resources(create(raw_pod(*copy.deepcopy(inner))).pod), strict=True):
        for kind, told in before["resources"].items():
            result = after.get(kind, {})
            assert not {"cpu", "memory"} & set(result)
            for lent, native, read in ((BATCH_CPU, "cpu", parse_millis), (BATCH_MEMORY, "memory", parse_units)):
                wanted = parse_units(told[lent]) if lent in told else read(told[native]) if native in told else None
                assert wanted is None or parse_units(result[lent]) == wanted
            assert told.get("nvidia.com/gpu") == result.get("nvidia.com/gpu")


def test_mutations_tell_what_they_renamed() -> None:
    """The log and the audit annotation name container, old and new amount."""
    result = create(raw_pod(raw_container(limits={"cpu": "2"})))
    assert result.steps[-1].detail == "container main: limits.cpu 2 → kubernetes.io/batch-cpu 2000"
