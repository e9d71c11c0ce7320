"""Affinity and spreading as Kubernetes means them."""

from __future__ import annotations

from typing import Any

import pytest

from kube.dialects.upstream.affinity import affinity, node_terms, spread
from model.fault import ConfigurationFault
from model.pod.affinity import NOWHERE, Affinity, NodeTerm, PodTerm, PreferredNodes, PreferredPods, SpreadConstraint
from model.selector import Operator, Requirement, Selector

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
OWN = {"app": "x", "pod-template-hash": "h"}


def equal(key: str, *values: str, operator: Operator = Operator.IN) -> Requirement:
    return Requirement(key, operator, values)


def term(**more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, **more}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


X = Selector((equal("app", "x"),))
READ: dict[str, tuple[dict[str, Any], Affinity]] = {
    "nothing": ({}, NOWHERE),
    "an empty one": ({"nodeAffinity": None}, NOWHERE),
    "no term matches no node": ({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}, Affinity(nodes=())),
    "terms": (
        {
            "nodeAffinity": {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [expression("cores", "Gt", "8"), expression("gpu", "Exists")]},
                        {"matchFields": [expression("metadata.name", "In", "n1")]},
                    ]
                }
            }
        },
        Affinity(
            nodes=(
                NodeTerm((equal("cores", "8", operator=Operator.GT), Requirement("gpu", Operator.EXISTS))),
                NodeTerm(names=(equal("metadata.name", "n1"),)),
            )
        ),
    ),
    "preferences": (
        {
            "nodeAffinity": {
                PREFERRED: [
                    {"weight": 5, "preference": {"matchExpressions": [expression("disk", "In", "ssd")]}},
                    {"weight": 7, "preference": {}},
                    {"weight": 0, "preference": {"matchExpressions": [expression("disk", "In", "hdd")]}},
                ]
            }
        },
        Affinity(preferred_nodes=(PreferredNodes(5, NodeTerm((equal("disk", "ssd"),))),)),
    ),
    "pods of its own namespace": ({"podAffinity": {REQUIRED: [term()]}}, Affinity(pods=(PodTerm("zone", X, ("ns",)),))),
    "pods of other namespaces": (
        {"podAntiAffinity": {REQUIRED: [term(namespaces=["b", "a"])]}},
        Affinity(anti_pods=(PodTerm("zone", X, ("a", "b")),)),
    ),
    "pods of all namespaces": (
        {"podAffinity": {REQUIRED: [term(namespaceSelector={})]}},
        Affinity(pods=(PodTerm("zone", X, (), Selector()),)),
    ),
    "no selector is no pod": (
        {"podAffinity": {REQUIRED: [{"topologyKey": "zone"}]}},
        Affinity(pods=(PodTerm("zone", None, ("ns",)),)),
    ),
    "an empty selector is every pod": (
        {"podAffinity": {REQUIRED: [term(labelSelector={})]}},
        Affinity(pods=(PodTerm("zone", Selector(), ("ns",)),)),
    ),
    "weights, negative for anti-affinity": (
        {
            "podAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": term()}]},
            "podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": term()}]},
        },
        Affinity(
            preferred_pods=(
                PreferredPods(3, PodTerm("zone", X, ("ns",))),
                PreferredPods(-100, PodTerm("zone", X, ("ns",))),
            )
        ),
    ),
    "its own values": (
        {"podAffinity": {REQUIRED: [term(matchLabelKeys=["pod-template-hash", "none"], mismatchLabelKeys=["app"])]}},
        Affinity(
            pods=(
                PodTerm(
                    "zone",
                    Selector(
                        (
                            equal("app", "x"),
                            equal("pod-template-hash", "h"),
                            equal("app", "x", operator=Operator.NOT_IN),
                        )
                    ),
                    ("ns",),
                ),
            )
        ),
    ),
}


@pytest.mark.parametrize(("raw", "expected"), READ.values(), ids=READ.keys())
def test_affinity(raw: dict[str, Any], expected: Affinity) -> None:
    """Required and preferred, of nodes and of pods."""
    assert affinity(raw, "ns", OWN, "Pod ns/p: spec.affinity") == expected


def test_a_key_that_the_server_merged_stands_once() -> None:
    """API servers since 1.31 write matchLabelKeys into the selector and keep the keys."""
    selector = {"matchLabels": {"app": "x"}, "matchExpressions": [expression("pod-template-hash", "In", "h")]}
    merged = affinity(
        {"podAffinity": {REQUIRED: [term(labelSelector=selector, matchLabelKeys=["pod-template-hash"])]}}, "ns", OWN, ""
    )
    before = affinity({"podAffinity": {REQUIRED: [term(matchLabelKeys=["pod-template-hash"])]}}, "ns", OWN, "")
    assert merged == before


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "an operator": (
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression("a", "Near")]}]}}},
        r"nodeAffinity.*nodeSelectorTerms\[0\].matchExpressions\[0\].operator: is 'Near' .write one of In, NotIn",
    ),
    "no number": (
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression("a", "Gt", "x")]}]}}},
        r"matchExpressions\[0\]: is not valid .Gt and Lt need one whole number",
    ),
    "values that are missing": (
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression("a", "In")]}]}}},
        "In and NotIn need values",
    ),
    "another field": (
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [expression("spec.x", "In", "n")]}]}}},
        "matchFields take key metadata.name",
    ),
    "no topology key": ({"podAffinity": {REQUIRED: [{}]}}, "write a topologyKey, such as kubernetes.io/hostname"),
    "a selector's operator": (
        {"podAffinity": {REQUIRED: [term(labelSelector={"matchExpressions": [expression("a", "Gt", "1")]})]}},
        r"labelSelector.matchExpressions\[0\].operator: is 'Gt' .write one of In, NotIn, Exists, DoesNotExist",
    ),
}


@pytest.mark.parametrize(("raw", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_what_cannot_be_read_is_named(raw: dict[str, Any], told: str) -> None:
    """Pod, field and fix."""
    with pytest.raises(ConfigurationFault, match=rf"^Pod ns/p: spec\.affinity\..*{told}"):
        affinity(raw, "ns", OWN, "Pod ns/p: spec.affinity")


SPREAD: dict[str, tuple[dict[str, Any], SpreadConstraint]] = {
    "defaults": ({}, SpreadConstraint("zone", 1, True, None)),
    "everything": (
        {
            "maxSkew": 3,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "x"}},
            "minDomains": None,
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
        },
        SpreadConstraint("zone", 3, False, X, 1, False, True),
    ),
    "domains": ({"minDomains": 4}, SpreadConstraint("zone", 1, True, None, 4)),
    "its own values": (
        {"labelSelector": {}, "matchLabelKeys": ["pod-template-hash", "none"]},
        SpreadConstraint("zone", 1, True, Selector((equal("pod-template-hash", "h"),))),
    ),
}


@pytest.mark.parametrize(("raw", "expected"), SPREAD.values(), ids=SPREAD.keys())
def test_spread(raw: dict[str, Any], expected: SpreadConstraint) -> None:
    """With Kubernetes' defaults."""
    assert spread([{"topologyKey": "zone", "maxSkew": 1, **raw}], OWN, "") == (expected,)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({"topologyKey": "zone", "maxSkew": 0}, r"\[0\].maxSkew: is 0 .expected a whole number >= 1"),
        ({"maxSkew": 1}, "topologyKey"),
        ({"topologyKey": "zone", "maxSkew": 1, "minDomains": 0}, r"\[0\].minDomains: is 0"),
    ],
)
def test_a_spread_that_cannot_be_read_is_named(raw: dict[str, Any], told: str) -> None:
    """Hard constraints are never ignored."""
    with pytest.raises(ConfigurationFault, match=f"^here.*{told}"):
        spread([raw], OWN, "here")


def test_terms_of_a_volume() -> None:
    """The same form without a pod around it."""
    found = node_terms({"nodeSelectorTerms": [{"matchExpressions": [expression("host", "In", "a")]}]}, "")
    assert found == (NodeTerm((equal("host", "a"),)),)
