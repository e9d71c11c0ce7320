"""Selectors that select the same nodes are found without any node; compared with trying all nodes there could be."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.core.overlap import nested, overlap
from model.selector import Operator, Requirement, Selector


def sel(*texts: str) -> Selector:
    """`a=1|2` In, `a!=1` NotIn, `a` Exists, `!a` DoesNotExist."""
    return Selector(tuple(map(requirement, texts)))


def requirement(text: str) -> Requirement:
    if "!=" in text:
        key, _, values = text.partition("!=")
        return Requirement(key, Operator.NOT_IN, tuple(values.split("|")))
    if "=" in text:
        key, _, values = text.partition("=")
        return Requirement(key, Operator.IN, tuple(values.split("|")))
    return Requirement(text.strip("!"), Operator.DOES_NOT_EXIST if text.startswith("!") else Operator.EXISTS)


CASES = {
    "the same": (sel("a=1"), sel("a=1"), True, True),
    "other values": (sel("a=1"), sel("a=2"), False, False),
    "a value in common": (sel("a=1|2"), sel("a=2|3"), True, True),
    "one more label": (sel("a=1"), sel("a=1", "b=1"), True, True),
    "other labels": (sel("a=1"), sel("b=1"), True, False),
    "there and not there": (sel("a"), sel("!a"), False, False),
    "there and a value": (sel("a"), sel("a=1"), True, True),
    "all but one, and that one": (sel("a!=1"), sel("a=1"), False, False),
    "all but one, and another": (sel("a!=1"), sel("a=2"), True, True),
    "without a label, and with another": (sel("!a"), sel("b=1"), True, True),
    "a contradiction": (sel("a=1", "a=2"), sel("a=1"), False, False),
    "everything": (Selector(), sel("a=1"), True, True),
}


@pytest.mark.parametrize(("one", "other", "possible", "certain"), CASES.values(), ids=CASES)
def test_cases(one: Selector, other: Selector, possible: bool, certain: bool) -> None:
    """Whichever is named first."""
    assert (overlap(one, other), overlap(other, one)) == (possible, possible)
    assert (nested(one, other), nested(other, one)) == (certain, certain)


requirements = st.sampled_from(["a=1", "a=1|2", "a!=1", "a!=1|2", "a", "!a", "b=1", "b!=1", "b", "!b"])
selectors = st.lists(requirements, max_size=3).map(lambda texts: sel(*texts))
NODES = [
    {key: value for key, value in (("a", a), ("b", b)) if value}
    for a, b in product(["", "1", "2", "other"], repeat=2)
]  # fmt: skip


@given(selectors, selectors)
def test_against_all_nodes(one: Selector, other: Selector) -> None:
    """Two selectors overlap just when some node is selected by both; nested ones overlap."""
    assert overlap(one, other) is any(one.matches(node) and other.matches(node) for node in NODES)
    assert not nested(one, other) or overlap(one, other)
