"""What a pod prefers of nodes: weights of matching terms, number of taints it would rather avoid."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import node, snapshot

from model.node import Taint, TaintEffect
from model.pod.affinity import NodeTerm, PreferredNodes
from model.pod.spec import Toleration, TolerationOperator
from model.selector import Operator, Requirement
from scheduler.core.scores.node_preference import disliked, preferred

SSD = NodeTerm((Requirement("disk", Operator.IN, ("ssd",)),))
FAST = NodeTerm((Requirement("speed", Operator.GT, ("5",)),))
NAMED = NodeTerm(names=(Requirement("metadata.name", Operator.IN, ("n2",)),))
NODES = snapshot(node("n1", labels={"disk": "ssd", "speed": "9"}), node("n2", labels={"disk": "ssd"}), node("n3"))

PREFERRED: dict[str, tuple[list[PreferredNodes], list[int]]] = {
    "one term": ([PreferredNodes(5, SSD)], [5, 5, 0]),
    "two terms add up": ([PreferredNodes(5, SSD), PreferredNodes(2, FAST)], [7, 5, 0]),
    "by name": ([PreferredNodes(3, NAMED)], [0, 3, 0]),
    "an empty term matches nothing": ([PreferredNodes(3, NodeTerm())], [0, 0, 0]),
}


@pytest.mark.parametrize(("terms", "wanted"), PREFERRED.values(), ids=PREFERRED.keys())
def test_preferred(terms: list[PreferredNodes], wanted: list[int]) -> None:
    assert preferred(NODES.traits, tuple(terms)).tolist() == wanted


def soft(key: str) -> Taint:
    return Taint(key, "v", TaintEffect.PREFER_NO_SCHEDULE)


TAINTED = snapshot(node("n1", taints=(soft("a"), soft("b"), Taint("c"))), node("n2", taints=(soft("a"),)), node("n3"))
DISLIKED: dict[str, tuple[Any, list[int]]] = {
    "tolerates nothing": ((), [2, 1, 0]),
    "tolerates one": ((Toleration("a", value="v"),), [1, 0, 0]),
    "tolerates it for another effect": ((Toleration("a", value="v", effect=TaintEffect.NO_SCHEDULE),), [2, 1, 0]),
    "tolerates all": ((Toleration(operator=TolerationOperator.EXISTS),), [0, 0, 0]),
}


@pytest.mark.parametrize(("tolerations", "wanted"), DISLIKED.values(), ids=DISLIKED.keys())
def test_disliked(tolerations: Any, wanted: list[int]) -> None:
    found = disliked(TAINTED.traits, tolerations)
    assert found is not None and found.tolist() == wanted


def test_hard_taints_alone_are_not_disliked() -> None:
    assert disliked(snapshot(node(taints=(Taint("a"),))).traits, ()) is None
