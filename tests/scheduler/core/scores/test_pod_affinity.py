"""Preferred pod affinity in both directions, with the rules of interpodaffinity/scoring.go."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import node, pod, snapshot

from model.pod.affinity import NOWHERE, Affinity, PodTerm, PreferredPods
from model.pod.pod import Pod
from model.selector import Operator, Requirement, Selector
from scheduler.core.scores.pod_affinity import pod_affinity
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.podclass import class_of, pod_traits_of

S1 = Selector((Requirement("security", Operator.IN, ("S1",)),))
ZONES = snapshot(node("a", labels={"z": "1"}), node("b", labels={"z": "1"}), node("c", labels={"z": "2"}), node("d"))


def near(weight: int, selector: Selector | None = S1, **more: Any) -> Affinity:
    return Affinity(preferred_pods=(PreferredPods(weight, PodTerm("z", selector, **more)),))


def one(name: str, affinity: Affinity = NOWHERE, security: str = "S1") -> Pod:
    return pod(name, labels={"security": security}, affinity=affinity)


REQUIRED = Affinity(pods=(PodTerm("z", S1),))

# the pod, those on each row, what required affinity of theirs weighs; raw scores
CASES: dict[str, tuple[Pod, dict[int, list[Pod]], int, list[int] | None]] = {
    "nobody prefers anything": (one("p"), {0: [one("q")]}, 1, None),
    "prefers to be near one that is there": (one("p", near(5)), {0: [one("q")]}, 1, [5, 5, 0, 0]),
    "each of them counts": (one("p", near(5)), {0: [one("q"), one("r")], 1: [one("s")]}, 1, [15, 15, 0, 0]),
    "prefers to be away": (one("p", near(-5)), {2: [one("q")]}, 1, [0, 0, -5, 0]),
    "nobody matches": (one("p", near(5)), {0: [one("q", security="S2")]}, 1, None),
    "a term that matches nobody": (one("p", near(5, None)), {0: [one("q")]}, 1, None),
    "whose node has no such label": (one("p", near(5)), {3: [one("q")]}, 1, [0, 0, 0, 0]),
    "one there prefers it": (one("p"), {2: [one("q", near(7))]}, 1, [0, 0, 7, 0]),
    "one there would rather not": (one("p"), {2: [one("q", near(-7))]}, 1, [0, 0, -7, 0]),
    "one there prefers others": (one("p", security="S2"), {2: [one("q", near(7))]}, 1, None),
    "one there requires it": (one("p"), {2: [one("q", REQUIRED)]}, 1, [0, 0, 1, 0]),
    "which weighs as set": (one("p"), {2: [one("q", REQUIRED)]}, 4, [0, 0, 4, 0]),
    "or nothing": (one("p"), {2: [one("q", REQUIRED)]}, 0, None),
    "both ways": (one("p", near(5)), {0: [one("q", near(7))], 2: [one("r")]}, 1, [12, 12, 5, 0]),
    "in another namespace": (one("p", near(5, namespaces=("other",))), {0: [one("q")]}, 1, None),
    "in all namespaces": (one("p", near(5, namespace_selector=Selector())), {0: [one("q")]}, 1, [5, 5, 0, 0]),
}


@pytest.mark.parametrize(("who", "there", "required", "wanted"), CASES.values(), ids=CASES.keys())
def test_interpod(who: Pod, there: dict[int, list[Pod]], required: int, wanted: list[int] | None) -> None:
    pod_index = PodIndex(len(ZONES.names))
    for row, pods in there.items():
        for resident in pods:
            pod_index.put(pod_traits_of(resident), row)
    found = pod_affinity(pod_index, ZONES.traits, class_of(who), pod_traits_of(who), required)
    assert (None if found is None else found.tolist()) == wanted
