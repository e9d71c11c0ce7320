"""Label selectors: every operator, with and without the label."""

from __future__ import annotations

import pytest

from model.selector import Operator, Requirement, Selector

CASES: dict[str, tuple[Operator, tuple[str, ...], str | None, bool]] = {
    "in": (Operator.IN, ("a", "b"), "b", True),
    "not in": (Operator.IN, ("a", "b"), "c", False),
    "in, absent": (Operator.IN, ("",), None, False),
    "in, empty": (Operator.IN, ("",), "", True),
    "NotIn": (Operator.NOT_IN, ("a",), "b", True),
    "NotIn, there": (Operator.NOT_IN, ("a",), "a", False),
    "NotIn, absent": (Operator.NOT_IN, ("a",), None, True),
    "exists": (Operator.EXISTS, (), "", True),
    "exists, absent": (Operator.EXISTS, (), None, False),
    "does not exist": (Operator.DOES_NOT_EXIST, (), None, True),
    "does not exist, there": (Operator.DOES_NOT_EXIST, (), "", False),
    "greater": (Operator.GT, ("5",), "6", True),
    "not greater": (Operator.GT, ("5",), "5", False),
    "as numbers, not as texts": (Operator.GT, ("9",), "10", True),
    "less": (Operator.LT, ("5",), "-4", True),
    "not less": (Operator.LT, ("5",), "5", False),
    "less, absent": (Operator.LT, ("5",), None, False),
    "no number in the label": (Operator.GT, ("5",), "six", False),
    "no number in the selector": (Operator.LT, ("six",), "5", False),
    "no value in the selector": (Operator.GT, (), "5", False),
}


@pytest.mark.parametrize(("operator", "values", "label", "holds"), CASES.values(), ids=CASES)
def test_requirement(operator: Operator, values: tuple[str, ...], label: str | None, holds: bool) -> None:
    """As Kubernetes reads it."""
    labels = {} if label is None else {"key": label}
    assert Requirement("key", operator, values).holds({"other": "a", **labels}) is holds


def test_all_requirements_hold_together() -> None:
    """None at all matches everything."""
    both = Selector((Requirement("a", Operator.EXISTS), Requirement("b", Operator.IN, ("1",))))
    assert both.matches({"a": "", "b": "1"})
    assert not both.matches({"a": ""}) and not both.matches({"b": "1"})
    assert Selector().matches({})
