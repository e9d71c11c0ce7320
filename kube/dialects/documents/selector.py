"""Label selectors of Kubernetes as they are written, into the model's.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from model import selector


class MatchOperator(StrEnum):
    """What a requirement says of its key."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class MatchExpression(msgspec.Struct, frozen=True):
    """One of matchExpressions."""

    key: str
    operator: MatchOperator
    values: list[str] | None = None

    def __post_init__(self) -> None:
        if bool(self.values) != (self.operator in (MatchOperator.IN, MatchOperator.NOT_IN)):
            raise ValueError("In and NotIn need values, Exists and DoesNotExist take none")

    def in_model(self) -> selector.Requirement:
        """Values in the order in which they stand."""
        return selector.Requirement(self.key, selector.Operator(self.operator.value), tuple(self.values or ()))


class LabelSelector(msgspec.Struct, frozen=True, rename="camel"):
    """An empty selector matches everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[MatchExpression] | None = None

    @property
    def parts(self) -> int:
        """How many keys and values it has."""
        return len(self.match_labels or ()) + sum(1 + len(each.values or ()) for each in self.match_expressions or ())

    def in_model(self) -> selector.Selector:
        """matchLabels first, by key."""
        equal = (one_of(key, value) for key, value in sorted((self.match_labels or {}).items()))
        return selector.Selector((*equal, *(each.in_model() for each in self.match_expressions or ())))


_LISTED = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_COMPARED = re.compile(r"([^\s!=]+)\s*(==|=|!=)\s*([^\s!=]*)")
_NAMED = re.compile(r"(!?)\s*([^\s!=()]+)")
_BETWEEN = re.compile(r",(?![^()]*\))")


def selector_of(text: str) -> selector.Selector:
    """A selector as kubectl's --selector takes it: `a=b,c!=d,e in (x,y),f notin (z),g,!h`. Raises ValueError."""
    return selector.Selector(tuple(_requirement(term.strip()) for term in _BETWEEN.split(text) if text.strip()))


def _requirement(term: str) -> selector.Requirement:
    if listed := _LISTED.fullmatch(term):
        key, operator, values = listed.groups()
        words = tuple(value.strip() for value in values.split(","))
        return selector.Requirement(key, selector.Operator.IN if operator == "in" else selector.Operator.NOT_IN, words)
    if compared := _COMPARED.fullmatch(term):
        key, operator, value = compared.groups()
        return selector.Requirement(
            key, selector.Operator.NOT_IN if operator == "!=" else selector.Operator.IN, (value,)
        )
    if named := _NAMED.fullmatch(term):
        without = selector.Operator.DOES_NOT_EXIST if named[1] else selector.Operator.EXISTS
        return selector.Requirement(named[2], without)
    raise ValueError(f"{term!r} is no requirement such as key=value")


def one_of(key: str, *values: str) -> selector.Requirement:
    """The label must be there with one of the values."""
    return selector.Requirement(key, selector.Operator.IN, values)
