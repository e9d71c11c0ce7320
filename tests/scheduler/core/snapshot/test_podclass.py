"""Pods that every filter and score treats alike are one class, and no others are."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from scheduler_builders import pod

from model.pod.affinity import Affinity, HostPort, NodeTerm, PodTerm, SpreadConstraint
from model.pod.spec import Toleration
from model.resources import BATCH_CPU, PODS
from model.selector import Operator, Requirement, Selector
from scheduler.core.snapshot.podclass import NO_INTERPOD, ClassMemo, KnownClasses, PodClass, class_of, pod_traits_of

APP = Selector((Requirement("app", Operator.IN, ("a",)),))
NEAR = Affinity(pods=(PodTerm("zone", APP),))
SPREAD = SpreadConstraint("zone", 1, True, APP)
ON_SSD = Affinity(nodes=(NodeTerm((Requirement("disk", Operator.IN, ("ssd",)),)),))
ALIKE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "names": ({}, {}),
    "labels nobody's own term looks at": ({"labels": {"index": "1"}}, {"labels": {"index": "2"}}),
    "a label beside those its term looks at": (
        {"labels": {"app": "a", "index": "1"}, "affinity": NEAR},
        {"labels": {"app": "a", "index": "2"}, "affinity": NEAR},
    ),
    "namespaces without terms": ({"namespace": "x"}, {"namespace": "y"}),
    "requests of nothing": ({"requests": {BATCH_CPU: 5, "gpu": 0}}, {"requests": {BATCH_CPU: 5}}),
}
APART: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "requests": ({"batch_cpu": 1}, {"batch_cpu": 2}),
    "node selectors": ({"node_selector": {"a": "b"}}, {}),
    "tolerations": ({"tolerations": (Toleration(key="x"),)}, {}),
    "terms about nodes": ({"affinity": ON_SSD}, {}),
    "claims": ({"claims": ("data",)}, {}),
    "claims of two namespaces": ({"claims": ("data",)}, {"claims": ("data",), "namespace": "y"}),
    "a label that its term looks at": (
        {"labels": {"app": "a"}, "affinity": NEAR},
        {"labels": {"app": "b"}, "affinity": NEAR},
    ),
    "a label that its spread looks at": (
        {"labels": {"app": "a"}, "spread": (SPREAD,)},
        {"labels": {"app": "b"}, "spread": (SPREAD,)},
    ),
    "namespaces with terms": ({"affinity": NEAR, "namespace": "x"}, {"affinity": NEAR, "namespace": "y"}),
    "host ports": ({"host_ports": (HostPort(80),)}, {}),
}


@pytest.mark.parametrize(("one", "other"), ALIKE.values(), ids=ALIKE)
def test_one_class(one: dict[str, Any], other: dict[str, Any]) -> None:
    """What no filter and no score looks at makes no difference."""
    assert class_of(pod("a", **one)) == class_of(pod("b", **other))


@pytest.mark.parametrize(("one", "other"), APART.values(), ids=APART)
def test_two_classes(one: dict[str, Any], other: dict[str, Any]) -> None:
    """What any of them looks at does."""
    assert class_of(pod("a", **one)) != class_of(pod("b", **other))


def test_a_pod_takes_one_of_pods() -> None:
    """Beside what it asks for, sorted by name."""
    assert class_of(pod(requests={"z": 1, BATCH_CPU: 2})).request == ((BATCH_CPU, 2), (PODS, 1), ("z", 1))


def test_without_terms_about_pods_it_is_everybodys() -> None:
    """Terms about nodes alone leave that part as it is; ports make one of their own."""
    assert class_of(pod(affinity=ON_SSD, labels={"app": "a"})).interpod is NO_INTERPOD
    assert class_of(pod(host_ports=(HostPort(80),), labels={"app": "a"})).interpod.labels == ()


def test_what_others_see_of_a_pod() -> None:
    """All labels, its terms about pods but none about nodes, its ports, and whether it goes."""
    seen = pod_traits_of(pod(namespace="x", labels={"b": "2", "a": "1"}, affinity=ON_SSD, deleting=True))
    assert (seen.namespace, seen.labels, seen.terminating) == ("x", (("a", "1"), ("b", "2")), True)
    assert seen.affinity == Affinity()
    assert pod_traits_of(pod(affinity=NEAR)).affinity == NEAR


def test_known_classes_are_shared_and_forgotten() -> None:
    """Equal ones are one object as long as anybody has it."""
    known = KnownClasses()
    first = known.shared(class_of(pod(batch_cpu=7)))
    assert known.shared(class_of(pod(batch_cpu=7))) is first
    assert known.shared(class_of(pod(batch_cpu=8))) is not first
    del first
    gc.collect()
    assert len(known) == 0


def test_a_memo_asks_once_for_each_class_and_subject() -> None:
    """And keeps the newest answer alone."""
    memo, asked = ClassMemo[int](), list[str]()
    kept = PodClass(((PODS, 1), ("z", 1)))

    def answer(about: str) -> int:
        return memo.get(kept, about, lambda: asked.append(about) or len(asked))

    assert [answer("x"), answer("x"), answer("y"), answer("x")] == [1, 1, 2, 3]
    assert asked == ["x", "y", "x"]
    assert len(memo) == 1
