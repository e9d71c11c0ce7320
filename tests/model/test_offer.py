"""No node lends more than it has."""

from __future__ import annotations

import pytest

from model.node import Node
from model.offer import believed
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY, ResourceVector

HAS = {CPU: 1000, MEMORY: 4 << 30}
ABSURD = 1 << 53
CASES: dict[str, tuple[dict[str, int], float | None, set[str]]] = {
    "nothing": ({}, None, set()),
    "all it has": ({BATCH_CPU: 1000, BATCH_MEMORY: 4 << 30, MID_CPU: 1000, MID_MEMORY: 4 << 30}, None, set()),
    "a little more CPU": ({BATCH_CPU: 1001, BATCH_MEMORY: 1}, None, {BATCH_CPU}),
    "a little more memory": ({BATCH_CPU: 500, BATCH_MEMORY: (4 << 30) + 1}, None, {BATCH_MEMORY}),
    "mid alike": ({MID_CPU: 1001, MID_MEMORY: ABSURD}, None, {MID_CPU, MID_MEMORY}),
    "1e30 of all": (dict.fromkeys((BATCH_CPU, BATCH_MEMORY), ABSURD), None, {BATCH_CPU, BATCH_MEMORY}),
    "faster CPUs": ({BATCH_CPU: 1250}, 1.25, set()),
    "rounded up": ({BATCH_CPU: 1235}, 1.2345, set()),
    "more than faster CPUs": ({BATCH_CPU: 1251}, 1.25, {BATCH_CPU}),
    "memory is no faster": ({BATCH_MEMORY: 5 << 30, MID_CPU: 1250}, 1.25, {BATCH_MEMORY, MID_CPU}),
    "a ratio that no CPU has": ({BATCH_CPU: 5001}, 5.01, {BATCH_CPU}),
    "a ratio below 1": ({BATCH_CPU: 1000}, 0.1, set()),
    "no number": ({BATCH_CPU: 1001}, float("nan"), {BATCH_CPU}),
}


@pytest.mark.parametrize(("lent", "ratio", "refused"), CASES.values(), ids=CASES)
def test_what_counts(lent: dict[str, int], ratio: float | None, refused: set[str]) -> None:
    """What is above the bound counts as 0 and is named with amount and bound; the rest stays."""
    node = Node("n", ResourceVector(HAS), ResourceVector({CPU: 900, "pods": 110, **lent}))
    found = believed(node, ratio)
    expected = {name: 0 if name in refused else amount for name, amount in node.allocatable.amounts.items()}
    assert found.node.allocatable == ResourceVector(expected) and bool(found.doubt) is bool(refused)
    assert all(f"its offer of {lent[name]} {name} counts as 0: the node's own" in found.doubt for name in refused)
    assert found.node is node or refused


def test_amplification_bounds_nothing() -> None:
    """It raises allocatable and leaves capacity alone, which is what the node has."""
    amplified = Node("n", ResourceVector({CPU: 4000}), ResourceVector({CPU: 8000, BATCH_CPU: 4001}))
    assert believed(amplified).node.allocatable[BATCH_CPU] == 0


def test_a_node_without_capacity() -> None:
    """Is in no cluster: a file that leaves it out is taken at its word."""
    assert not believed(Node("n", allocatable=ResourceVector({BATCH_CPU: 1000}))).doubt
