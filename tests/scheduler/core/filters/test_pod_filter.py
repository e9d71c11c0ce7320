"""What a filter is asked: whom a term of the pod means, in which namespaces, and whether that is the pod itself."""

from __future__ import annotations

import pytest
from filter_builders import ZONE, cluster, pod_index, selector, term
from scheduler_builders import node, pod

from model.pod.affinity import PodTerm
from model.pod.pod import Pod
from scheduler.core.filters.pod_filter import FilterRequest
from scheduler.core.snapshot.podclass import class_of, pod_traits_of

NODES = cluster(
    node("a", labels={ZONE: "x"}),
    node("b"),
    namespaces={"default": {"team": "t"}, "other": {"team": "t"}, "third": {}},
)


def request(wanted: Pod) -> FilterRequest:
    return FilterRequest(pod_index(NODES, []), NODES.traits, class_of(wanted), pod_traits_of(wanted))


CASES: dict[str, tuple[PodTerm, frozenset[str] | None]] = {
    "no namespaces: its own": (term(app="a"), frozenset({"default"})),
    "named ones": (term(namespaces=("other",), app="a"), frozenset({"other"})),
    "by their labels": (term(where=selector(team="t"), app="a"), frozenset({"default", "other"})),
    "named and by labels": (
        term(namespaces=("third",), where=selector(team="t")),
        frozenset({"default", "other", "third"}),
    ),
    "an empty selector: all": (term(where=selector()), None),
}


@pytest.mark.parametrize(("asked", "namespaces"), CASES.values(), ids=CASES)
def test_whom_a_term_means(asked: PodTerm, namespaces: frozenset[str] | None) -> None:
    """Namespaces of the term, or of the pod that holds it."""
    found = request(pod()).pods(asked)
    assert found.namespaces == namespaces
    assert found.selector == asked.selector


def test_namespaces_are_looked_up_once_for_each_term_and_pods_namespace() -> None:
    """The same term of a pod elsewhere means other pods."""
    here, there = request(pod()), request(pod("p2", namespace="other"))
    assert here.pods(term(app="a")).namespaces == {"default"}
    assert there.pods(term(app="a")).namespaces == {"other"}


def test_a_pod_may_mean_itself() -> None:
    """By its own labels and its own namespace."""
    own = request(pod(labels={"app": "a"}))
    assert own.matches_itself(own.pods(term(app="a")))
    assert not own.matches_itself(own.pods(term(app="b")))
    assert not own.matches_itself(own.pods(term(namespaces=("other",), app="a")))


def test_rows_and_labels() -> None:
    """One row a node; a node label by row."""
    asked = request(pod(labels={"app": "a"}))
    assert asked.size == 2 and asked.labels == {"app": "a"}
    assert asked.column(ZONE).codes.tolist()[1] != asked.column(ZONE).codes.tolist()[0]
