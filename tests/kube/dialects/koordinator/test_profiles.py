"""ClusterColocationProfiles as they are written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.dialects.koordinator.profiles import profile
from kube.objects import ClusterColocationProfile, Metadata
from model.profile import ColocationProfile
from model.qos import QoSClass
from model.selector import Operator, Requirement, Selector


def read(spec: Any, **annotations: str) -> ColocationProfile:
    return profile(ClusterColocationProfile(Metadata(name="p", annotations=annotations), spec))


def test_every_field() -> None:
    """All of Koordinator's, as the model has them."""
    found = read(
        {
            "namespaceSelector": {"matchLabels": {"a": "1"}},
            "selector": {"matchExpressions": [{"key": "b", "operator": "Exists"}]},
            "probability": "30%",
            "qosClass": "BE",
            "priorityClassName": "koord-batch",
            "koordinatorPriority": -1,
            "labels": {"l": "1"},
            "annotations": {"n": "1"},
            "labelKeysMapping": {"l": "m"},
            "annotationKeysMapping": {"n": "o"},
            "labelSuffixes": {"l": "-x"},
            "schedulerName": "koord-scheduler",
            "patch": {"spec": {}},
        }
    )
    assert found == ColocationProfile(
        "p",
        namespaces=Selector((Requirement("a", Operator.IN, ("1",)),)),
        pods=Selector((Requirement("b", Operator.EXISTS),)),
        probability_pct=30,
        labels={"l": "1"},
        annotations={"n": "1"},
        label_keys={"l": "m"},
        annotation_keys={"n": "o"},
        label_suffixes={"l": "-x"},
        scheduler_name="koord-scheduler",
        qos=QoSClass.BE,
        priority_class_name="koord-batch",
        sub_priority=-1,
        patch={"spec": {}},
    )


def test_silence() -> None:
    """Selects everything, does nothing."""
    assert (
        read(None) == read({}) == read(dict.fromkeys(("selector", "labels", "probability"))) == ColocationProfile("p")
    )


def test_resources_may_be_left_alone() -> None:
    """Whatever the annotation holds."""
    assert read({}, **{"config.koordinator.sh/skip-update-resources": ""}).rewrites is False


FAULTS = {
    "spec": ([], "spec: is not an object"),
    "selector": ({"selector": []}, "spec.selector"),
    "operator": (
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}},
        "spec.selector.matchExpressions[0].operator",
    ),
    "namespace selector": ({"namespaceSelector": {"matchLabels": {"a": 1}}}, "spec.namespaceSelector.matchLabels['a']"),
    "probability": ({"probability": -1}, "spec.probability: is -1"),
    "percentage": ({"probability": "101%"}, "spec.probability: is '101%'"),
    "no percentage": ({"probability": "30"}, "spec.probability: is '30'"),
    "sub-priority": ({"koordinatorPriority": 1 << 31}, "spec.koordinatorPriority"),
    "labels": ({"labels": {"a": 1}}, "spec.labels"),
    "patch": ({"patch": "x"}, "spec.patch"),
}


@pytest.mark.parametrize(("spec", "words"), FAULTS.values(), ids=FAULTS)
def test_faults(spec: Any, words: str) -> None:
    """Object and field are named; whom the readable selector means is still known."""
    assert read(spec).fault.startswith(f"ClusterColocationProfile p: {words}")


def test_a_broken_selector_does_not_hide_the_other() -> None:
    """So that only those are told whom the profile could mean."""
    found = read({"selector": {"matchLabels": {"a": "1"}}, "namespaceSelector": 5, "probability": "x"})
    assert found.pods != Selector() and "spec.namespaceSelector" in found.fault


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
FIELDS = ["selector", "namespaceSelector", "probability", "qosClass", "labels", "patch", "koordinatorPriority"]


@given(anything | st.dictionaries(st.sampled_from(FIELDS), anything))
def test_whatever_a_spec_holds(spec: Any) -> None:
    """A profile, never an error."""
    read(spec)
