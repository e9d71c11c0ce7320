"""What a replay found: differences of decisions, and amounts side by side."""

from __future__ import annotations

import msgspec

from model.decision import Term
from model.resources import BATCH_CPU, BATCH_MEMORY
from tests.view.nodes import BATCH_CPU as DECIDED
from tests.view.nodes import BATCH_MEMORY as MEMORY
from view.replayed import Point, TimeSlice, comparison, differences, lent_names


def test_the_same_decisions_have_no_differences() -> None:
    assert list(differences((DECIDED, MEMORY), (DECIDED, MEMORY))) == []


def test_a_difference_names_value_and_term() -> None:
    """And each field in which the record differs."""
    terms = (Term("capacity", 4000), Term("margin", -1000))
    now = msgspec.structs.replace(DECIDED, value=3000, terms=terms, policy="request")
    assert list(differences((DECIDED,), (now,))) == [
        "kubernetes.io/batch-cpu of node/n: recorded 2500m, now 3\n"
        "    margin: -1500 () → -1000 ()\n"
        "    policy: usage → request"
    ]


def test_one_that_is_not_decided_any_more() -> None:
    assert list(differences((DECIDED,), ())) == ["kubernetes.io/batch-cpu of node/n: recorded 2500m, now nothing"]


def test_another_order_is_a_difference() -> None:
    assert list(differences((DECIDED, MEMORY), (MEMORY, DECIDED))) == ["the same decisions, in another order or number"]


def point(at: float, lent: int, would_lend: int) -> Point:
    return Point(at, {BATCH_CPU: lent}, {BATCH_CPU: would_lend})


def test_resources_of_which_there_was_none_are_left_out() -> None:
    assert lent_names([point(0, 0, 0)]) == []
    assert lent_names([Point(0, {BATCH_MEMORY: 1}, {BATCH_CPU: 0})]) == [BATCH_MEMORY]


def test_few_ticks_have_a_line_each() -> None:
    """Lent and would be lent in CPUs; then the figures of all ticks."""
    found = comparison([point(10, 1000, 2000), point(11, 3000, 2000)])
    assert found.title == "2 ticks, each line one of them"
    assert found.slices == (TimeSlice(10, ("1.000", "2.000")), TimeSlice(11, ("3.000", "2.000")))
    assert found.figures == (("average", "2.000", "2.000"), ("least", "1.000", "2.000"), ("most", "3.000", "2.000"))
    assert found.heads == (("", "batch-cpu", "in CPUs"), ("from (UTC)", "lent", "would lend"))


def test_many_ticks_are_averaged() -> None:
    """At most twenty lines."""
    found = comparison([point(at, 1000 * (at % 2), 0) for at in range(40)])
    assert found.title == "40 ticks, each line the average of 2"
    assert len(found.slices) == 20 and found.slices[1] == TimeSlice(2, ("0.500", "0.000"))
