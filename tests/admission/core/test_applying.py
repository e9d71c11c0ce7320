"""One profile applied to one pod: in Koordinator's order, and a second time without any change."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from admission_builders import CLASSES, profile

from admission.core.applying import NotApplicable, applied
from kube.podmerge import merge_pod
from model.profile import ColocationProfile

POD: dict[str, Any] = {"metadata": {"labels": {"app": "a", "job": "x"}, "annotations": {"n": "1"}}, "spec": {}}


def result(found: ColocationProfile, pod: dict[str, Any] = POD) -> dict[str, Any]:
    before = copy.deepcopy(pod)
    changed = applied(pod, found, CLASSES, merge_pod)
    assert pod == before
    assert applied(changed, found, CLASSES, merge_pod) == changed
    return changed


LABELS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "nothing": ({}, {}),
    "labels, over those there are": ({"labels": {"app": "b", "new": "1"}}, {"app": "b", "new": "1"}),
    "a label under another key": ({"labelKeysMapping": {"job": "train"}}, {"train": "x"}),
    "of a label that the profile wrote": (
        {"labels": {"job": "y"}, "labelKeysMapping": {"job": "train"}},
        {"job": "y", "train": "y"},
    ),
    "of a label that is not there": ({"labelKeysMapping": {"none": "train"}}, {}),
    "a suffix": ({"labelSuffixes": {"job": "-batch"}}, {"job": "x-batch"}),
    "a suffix of a label that is not there": ({"labelSuffixes": {"none": "-batch"}}, {}),
    "the QoS class, over a label of that key": (
        {"labels": {"koordinator.sh/qosClass": "LS"}, "qosClass": "BE"},
        {"koordinator.sh/qosClass": "BE"},
    ),
    "the sub-priority": ({"koordinatorPriority": 7}, {"koordinator.sh/priority": "7"}),
    "a patch has the last word": (
        {"labels": {"app": "b"}, "patch": {"metadata": {"labels": {"app": "c"}}}},
        {"app": "c"},
    ),
}


@pytest.mark.parametrize(("spec", "labels"), LABELS.values(), ids=LABELS)
def test_labels(spec: dict[str, Any], labels: dict[str, str]) -> None:
    """Beside those that nothing is said of."""
    assert result(profile(**spec))["metadata"]["labels"] == {"app": "a", "job": "x"} | labels


def test_annotations() -> None:
    """Written, and under another key."""
    found = result(profile(annotations={"m": "2"}, annotationKeysMapping={"n": "o", "none": "p"}))
    assert found["metadata"]["annotations"] == {"n": "1", "m": "2", "o": "1"}


def test_the_spec() -> None:
    """Scheduler, and of the priority class all three fields."""
    assert result(profile(schedulerName="s"))["spec"] == {"schedulerName": "s"}
    assert result(profile(priorityClassName="never"))["spec"] == {
        "priorityClassName": "never",
        "priority": 5500,
        "preemptionPolicy": "Never",
    }
    replaced = result(profile(priorityClassName="koord-batch"), {"spec": {"priority": 9, "priorityClassName": "old"}})
    assert (replaced["spec"]["priority"], replaced["spec"]["priorityClassName"]) == (5000, "koord-batch")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priorityClassName": "gone"}, "spec.priorityClassName gone does not exist; create PriorityClass gone"),
        ({"patch": {"spec": {"containers": [{"image": "x"}]}}}, "spec.patch cannot be applied: .*; mend the patch"),
    ],
)
def test_what_cannot_be_applied(spec: dict[str, Any], words: str) -> None:
    """The pod must not be created without it."""
    with pytest.raises(NotApplicable, match=words):
        applied(POD, profile(**spec), CLASSES, merge_pod)
