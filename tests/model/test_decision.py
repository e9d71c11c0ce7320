"""A decision's value is the sum of its terms, always."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import explain, reason
from model.decision import Decision, Term, TermSum, Unit
from model.explain import lines, sentence, text
from model.reason import Reason


def decided(terms: tuple[Term, ...], value: int, **more: object) -> Decision:
    fields = {"subject": "node/n", "name": "kubernetes.io/batch-cpu", "unit": Unit.MILLI_CPU, "reason": Reason.COMPUTED}
    return Decision(value=value, terms=terms, **{**fields, **more})  # type: ignore[arg-type]


def test_terms_that_do_not_sum_are_refused() -> None:
    """A wrong explanation cannot even be constructed."""
    with pytest.raises(ValueError, match=r"node/n kubernetes.io/batch-cpu: terms sum to 6, value is 7"):
        decided((Term("capacity", 10), Term("used", -4)), 7)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(-1000, 1000)),
            st.tuples(st.just("at_least"), st.integers(-1000, 1000)),
            st.tuples(st.just("at_most"), st.integers(-1000, 1000)),
            st.tuples(st.just("become"), st.integers(-1000, 1000)),
        )
    )
)
def test_any_way_of_building_keeps_the_sum(steps: list[tuple[str, int]]) -> None:
    """Caps, floors and holds are terms too, and do what their names say."""
    total = TermSum()
    for step, amount in steps:
        before = total.value
        getattr(total, step)(step, amount)
        expected = {"add": before + amount, "at_least": max(before, amount), "at_most": min(before, amount)}
        assert total.value == expected.get(step, amount)
    assert sum(term.value for term in total.terms) == total.value


def test_words() -> None:
    """One record gives the log line and the table."""
    record = decided((Term("capacity", 2000, "node status"), Term("margin", -800)), 1200, policy="usage")
    assert sentence(record) == (
        "kubernetes.io/batch-cpu of node/n = 1200m: computed from current facts [capacity 2000 - margin 800]"
    )
    shown = lines(record)
    assert shown[0] == "node/n  kubernetes.io/batch-cpu  (policy usage)"
    assert shown[1].split() == ["+", "capacity", "2000", "node", "status"]
    assert shown[-2].split() == ["=", "value", "1200", "1200m"]
    assert text([record, record]).count("= value") == 2


def test_no_limit_is_no_sum() -> None:
    """The kernel's -1 is a word for it, not an amount that terms make."""
    record = decided((Term("unlimited", -1),), -1, name="cpu.cfs_quota_us", unit=Unit.MICROSECONDS)
    assert lines(record)[1:-1] == ["  = unlimited"]
    assert "[" not in sentence(record)


def test_every_reason_has_words() -> None:
    """A code without words would reach a person as an exception."""
    for code in Reason:
        assert reason.words(code)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1500, Unit.MILLI_CPU, "1500m"),
        (2 << 30, Unit.BYTES, "2Gi"),
        (15763610128, Unit.BYTES, "~14.68Gi"),
        (1000, Unit.BYTES, "1000"),
        (-1, Unit.MICROSECONDS, "unlimited"),
        (95_000, Unit.MICROSECONDS, "95000us"),
        (2, Unit.SHARES, "2 shares"),
    ],
)
def test_amounts_as_people_read_them(value: int, unit: Unit, shown: str) -> None:
    """Exact where a suffix fits, rounded and marked so where none does."""
    assert explain.amount(value, unit) == shown
