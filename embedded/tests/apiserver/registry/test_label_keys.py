"""A pod's own label values in the selectors of its terms."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.apiserver.registry.label_keys import merge_label_keys

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LABELS = {"rev": "7", "tenant": "a"}
IN, NOT_IN = (
    {"key": "rev", "operator": "In", "values": ["7"]},
    {"key": "tenant", "operator": "NotIn", "values": ["a"]},
)


def places(term: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The same term wherever one may stand."""
    return {
        "affinity": {"affinity": {"podAffinity": {REQUIRED: [term]}}},
        "anti-affinity": {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}},
        "preferred": {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}}},
        "spreading": {"topologySpreadConstraints": [term]},
    }


@pytest.mark.parametrize("place", list(places({})))
def test_merged(place: str) -> None:
    """In place, once; a key the pod does not have asks nothing."""
    term = {"labelSelector": {}, "matchLabelKeys": ["rev", "none"], "mismatchLabelKeys": ["tenant"]}
    spec = places(term)[place]
    merge_label_keys(spec, LABELS)
    merge_label_keys(spec, LABELS)
    assert term["labelSelector"] == {"matchExpressions": [IN, NOT_IN]}


def test_what_stands_there_stays() -> None:
    """Before what is merged."""
    own = {"key": "app", "operator": "Exists"}
    term = {"labelSelector": {"matchExpressions": [own]}, "matchLabelKeys": ["rev"]}
    merge_label_keys({"topologySpreadConstraints": [term]}, LABELS)
    assert term["labelSelector"]["matchExpressions"] == [own, IN]


@pytest.mark.parametrize("spec", [{}, {"affinity": {}}, {"affinity": {"podAffinity": {}}}, {"affinity": None}])
def test_without_terms(spec: dict[str, Any]) -> None:
    """Nothing is made."""
    before = dict(spec)
    merge_label_keys(spec, LABELS)
    assert spec == before


def test_without_a_selector() -> None:
    """It matches nobody, and keeps doing so."""
    term = {"matchLabelKeys": ["rev"]}
    merge_label_keys({"topologySpreadConstraints": [term]}, LABELS)
    assert term == {"matchLabelKeys": ["rev"]}
