"""A pod's fields read with default, and changed without touching the document that was given."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from admission.core.podfields import (
    annotations_of,
    containers,
    labels_of,
    spec,
    with_containers,
    with_metadata,
    with_spec,
)

POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"a": "1", "b": "2"}, "annotations": {"x": "y"}},
    "spec": {"nodeName": "n", "containers": [{"name": "main"}], "initContainers": [{"name": "first"}]},
}
BARE: list[dict[str, Any]] = [
    {},
    {"metadata": None, "spec": None},
    {"metadata": {"labels": None, "annotations": None}, "spec": {"containers": None}},
]


@pytest.mark.parametrize("pod", BARE)
def test_what_is_not_there_is_empty(pod: dict[str, Any]) -> None:
    """A null is no value."""
    assert (labels_of(pod), annotations_of(pod), containers(pod)) == ({}, {}, [])
    assert not spec(pod).get("containers")


def test_what_is_there() -> None:
    """Init containers run first."""
    assert labels_of(POD) == {"a": "1", "b": "2"} and annotations_of(POD) == {"x": "y"}
    assert [each["name"] for each in containers(POD)] == ["first", "main"]


@pytest.mark.parametrize(
    ("pod", "changes", "labels"),
    [
        (POD, {"c": "3"}, {"a": "1", "b": "2", "c": "3"}),
        (POD, {"a": "9"}, {"a": "9", "b": "2"}),
        (POD, {"a": None}, {"b": "2"}),
        ({}, {"c": "3"}, {"c": "3"}),
        ({"metadata": None}, {"c": "3"}, {"c": "3"}),
    ],
)
def test_labels_with_changes(pod: dict[str, Any], changes: dict[str, str | None], labels: dict[str, str]) -> None:
    """None removes; the rest of the pod stays, and so does what was given."""
    before = copy.deepcopy(pod)
    changed = with_metadata(pod, "labels", changes)
    assert changed["metadata"]["labels"] == labels
    assert {**changed, "metadata": 0} == {**pod, "metadata": 0}
    assert annotations_of(changed) == annotations_of(pod)
    assert pod == before


@pytest.mark.parametrize("changes", [{}, {"gone": None}, {"a": "1"}])
def test_no_change_makes_no_map(changes: dict[str, str | None]) -> None:
    """A patch of it must be empty."""
    assert with_metadata(POD, "labels", changes) == POD
    without = {"spec": {}}
    assert with_metadata(without, "labels", {"gone": None}) == without


def test_fields_of_the_spec() -> None:
    """None removes."""
    before = copy.deepcopy(POD)
    changed = with_spec(POD, {"nodeName": None, "priority": 5})
    assert "nodeName" not in changed["spec"] and changed["spec"]["priority"] == 5
    assert changed["metadata"] == POD["metadata"] and before == POD
    assert with_spec({}, {"priority": 5}) == {"spec": {"priority": 5}}


def test_each_container_changes() -> None:
    """Those that may have resources, ephemeral ones not; a kind of which there is none is not made."""
    pod = {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "ephemeralContainers": [{"name": "e"}]}}
    changed = with_containers(pod, lambda each: {**each, "image": each["name"]})
    assert changed["spec"] == {
        "containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}],
        "ephemeralContainers": [{"name": "e"}],
    }
    both = with_containers(POD, lambda each: {})
    assert (both["spec"]["containers"], both["spec"]["initContainers"]) == ([{}], [{}])
