"""Whose own amounts those have who borrow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from queue_builders import queue

from model.queue import Queue
from scheduler.core.queues.lending import Holding, Lending, lending
from scheduler.core.queues.tree import tree_of

H = Holding
FLAT = (queue("a"), queue("b"), queue("c"))
ORGS = (queue("A"), queue("a1", "A"), queue("a2", "A"), queue("B"), queue("b1", "B"), queue("b2", "B"))
EXAMPLES: dict[str, tuple[tuple[Queue, ...], dict[str, Holding], dict[str, int]]] = {
    "nobody borrows": (FLAT, {"a": H(5, 10), "b": H(10, 10)}, {}),
    "one lends": (FLAT, {"a": H(15, 10), "b": H(0, 10), "c": H(10, 10)}, {"b": 5}),
    "in proportion to what is unused": (FLAT, {"a": H(19, 10), "b": H(0, 20), "c": H(0, 10)}, {"b": 6, "c": 3}),
    "ties by name": (FLAT, {"a": H(13, 10), "b": H(0, 10), "c": H(0, 10)}, {"b": 2, "c": 1}),
    "what is kept is not lent": (FLAT, {"a": H(15, 10), "b": H(0, 10, kept=8), "c": H(0, 10)}, {"b": 1, "c": 4}),
    "what nobody has of his own is the root's": (FLAT, {"a": H(15, 10), "b": H(8, 10), "": H(0, 70)}, {"b": 2, "": 3}),
    "more in use than there is": (FLAT, {"a": H(15, 10), "b": H(10, 10)}, {"": 5}),
    "a queue that is gone borrows all it has": (FLAT, {"gone": H(4, 0), "b": H(0, 10)}, {"b": 4}),
    "siblings before cousins": (ORGS, {"a1": H(16, 10), "a2": H(5, 10), "b1": H(0, 10)}, {"a2": 5, "b1": 1}),
    "the parent's own before cousins": (ORGS, {"a1": H(16, 10), "A": H(0, 4), "b1": H(0, 10)}, {"A": 4, "b1": 2}),
    "those who name their lenders first": (
        (queue("a"), queue("b", lenders=("c",)), queue("c"), queue("d")),
        {"a": H(15, 10), "b": H(15, 10), "c": H(0, 5), "d": H(0, 10)},
        {"c": 5, "d": 5},
    ),
    "lenders that lend no more": (
        (queue("b", lenders=("c",)), queue("c"), queue("d")),
        {"b": H(15, 10), "c": H(3, 5), "d": H(0, 10)},
        {"c": 2, "d": 3},
    ),
    "a whole subtree as lender": (
        (*ORGS, queue("b", lenders=("B",))),
        {"b": H(15, 10), "a1": H(0, 10), "b1": H(0, 2), "b2": H(0, 8)},
        {"b1": 1, "b2": 4},
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_who_lends(name: str) -> None:
    """The nearest relatives first, within a step in proportion, whole units by largest remainder."""
    queues, holdings, lent = EXAMPLES[name]
    assert lending(tree_of(queues), holdings).lent == lent


def test_of_an_inner_queue_counts_what_leaves_its_subtree() -> None:
    """What its children lend to one another does not; what it lends to them of its own part does."""
    found = lending(
        tree_of(ORGS),
        {"a1": H(15, 10), "a2": H(8, 10), "A": H(0, 1), "b1": H(0, 10), "b2": H(12, 10)},
    )
    assert found.lent == {"a2": 2, "A": 1, "b1": 4}
    assert found.with_below == {"a2": 2, "A": 1, "b1": 4, "B": 2}


holding = st.builds(Holding, used=st.integers(0, 20), own=st.integers(0, 20), kept=st.integers(0, 20))


@given(
    leaves=st.dictionaries(st.sampled_from(["a1", "a2", "b1", "b2", "b", "gone"]), holding),
    inner=st.dictionaries(st.sampled_from(["A", "B", ""]), holding),
)
def test_what_is_borrowed_is_what_is_lent(leaves: dict[str, Holding], inner: dict[str, Holding]) -> None:
    """Exactly, and nobody but the root lends more than it may."""
    tree = tree_of((*ORGS, queue("b", lenders=("B", "a1"))))
    holdings = {**leaves, **inner}
    found: Lending = lending(tree, holdings)
    assert sum(found.borrowed.values()) == sum(found.lent.values())
    assert found.borrowed == {name: one.borrowed for name, one in holdings.items() if one.borrowed}
    for name, amount in found.lent.items():
        assert name == "" or 0 < amount <= holdings[name].lendable
