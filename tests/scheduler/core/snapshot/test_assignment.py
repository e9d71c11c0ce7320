"""What two lists of assignments differ by."""

from __future__ import annotations

import pytest

from scheduler.core.snapshot.assignment import Assignment, net
from scheduler.core.snapshot.podclass import PodClass


def on(uid: str, row: int = 0) -> Assignment:
    return Assignment(uid, row, PodClass())


A, B, C = on("a"), on("b"), on("c")
CASES: dict[str, tuple[list[tuple[list[Assignment], int]], dict[str, int]]] = {
    "nothing": ([], {}),
    "who came": ([([A, B], 1)], {"a": 1, "b": 1}),
    "who went": ([([A], -1)], {"a": -1}),
    "who came and went is not told": ([([A, B], 1), ([A], -1)], {"b": 1}),
    "who went and came back neither": ([([A], -1), ([C], 1), ([A], 1)], {"c": 1}),
    "came, went, came": ([([A], 1), ([A], -1), ([A], 1)], {"a": 1}),
}


@pytest.mark.parametrize(("assigned", "wanted"), CASES.values(), ids=CASES)
def test_net(assigned: list[tuple[list[Assignment], int]], wanted: dict[str, int]) -> None:
    """Who came once more than it went, and the other way round."""
    assert {assignment.uid: count for assignment, count in net(assigned)} == wanted


def test_the_first_row_of_a_pod_is_told() -> None:
    """A pod has one place as long as it is in the lists."""
    ((assignment, count),) = net([([on("a", 3)], 1)])
    assert (assignment.row, count) == (3, 1)
