"""Label selectors: every operator, with and without the label."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert Selector((Requirement("key", operator, values),)).matches({"other": "a", **labels}) is holds


def test_all_requirements_hold_together() -> None:
    """None at all matches everything."""
    both = Selector((Requirement("a", Operator.EXISTS), Requirement("b", Operator.IN, ("1",))))
    assert both.matches({"a": "", "b": "1"})
    assert not both.matches({"a": ""}) and not both.matches({"b": "1"})
    assert Selector().matches({})


_WORD = st.sampled_from("abc")
_REQUIREMENT = st.builds(
    Requirement,
    _WORD,
    st.sampled_from([each for each in Operator if each not in (Operator.GT, Operator.LT)]),
    st.lists(_WORD, max_size=3).map(tuple),
)


@given(st.lists(_REQUIREMENT, max_size=5), st.dictionaries(_WORD, _WORD))
def test_together_they_say_what_each_says(requirements: list[Requirement], labels: dict[str, str]) -> None:
    """However they are looked up."""
    wanted = all(requirement.holds(labels) for requirement in requirements)
    assert Selector(tuple(requirements)).matches(labels) is wanted


class Compared(str):
    """Text that counts how often it is compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "requirements",
    [
        (Requirement("app", Operator.NOT_IN, tuple(map(str, range(1000)))),),
        (Requirement("app", Operator.IN, (*map(str, range(1000)), "web")),),
        tuple(Requirement("app", Operator.NOT_IN, (str(value),)) for value in range(1000)),
        tuple(Requirement(str(key), Operator.DOES_NOT_EXIST) for key in range(1000)),
    ],
    ids=("NotIn", "In", "one by one", "keys"),
)
def test_a_selector_does_not_walk_through_what_it_lists(requirements: tuple[Requirement, ...]) -> None:
    """Every pod of the cluster is compared with selectors that somebody writes as long as an object may be."""
    selector, Compared.times = Selector(requirements), 0
    assert selector.matches({Compared("app"): Compared("web")})
    assert Compared.times < 10
