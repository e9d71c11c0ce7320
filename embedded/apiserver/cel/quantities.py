"""Quantities and semantic versions in CEL: `quantity("1Gi").isGreaterThan(quantity("500Mi"))`.

https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-quantity-library
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from embedded import quantity
from embedded.apiserver.cel.functions import Function
from embedded.apiserver.cel.messages import Quantity, Semver

_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
# https://semver.org/#is-there-a-suggested-regular-expression-regex-to-check-a-semver-string
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
_INT64 = 2**63


def _message(value: Fraction) -> Any:
    return Quantity(numerator=str(value.numerator), denominator=str(value.denominator))


def _value(found: Any) -> Fraction:
    """Of a Quantity or of an integer."""
    return Fraction(found) if isinstance(found, int) else Fraction(int(found.numerator), int(found.denominator))


def _parsed(text: str) -> Any:
    try:
        return _message(quantity.parse(text))
    except quantity.QuantityError:
        raise ValueError(_FORM) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def _as_integer(found: Any) -> int:
    if not _is_integer(found):
        raise ValueError("cannot convert value to integer")
    return int(_value(found))


def _is_integer(found: Any) -> bool:
    value = _value(found)
    return value.denominator == 1 and -_INT64 <= value < _INT64


def _sign(found: Any) -> int:
    return _compared(_value(found), Fraction(0))


def _compared(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _order(text: str) -> tuple[Any, ...]:
    """What versions are compared by; raises ValueError. https://semver.org/#spec-item-11"""
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise ValueError(f'"{text}" is not a semantic version')
    numbers, before = tuple(int(part) for part in found.groups()[:3]), found[4]
    words = (before or "").split(".")
    return (*numbers, before is None, tuple((0, int(w), "") if w.isdecimal() else (1, 0, w) for w in words))


def _semver(text: str) -> Any:
    _order(text)
    return Semver(text=text)


def _part(index: int) -> Any:
    return lambda found: _order(found.text)[index]


_QUANTITIES = ("Quantity", "Quantity")
_VERSIONS = ("Semver", "Semver")
FUNCTIONS = (
    Function("quantity", ("string",), "Quantity", _parsed, member=False),
    Function("isQuantity", ("string",), "bool", _is_quantity, member=False),
    Function("sign", ("Quantity",), "int", _sign, member=False),  # documented as a member, and none
    Function("isInteger", ("Quantity",), "bool", _is_integer),
    Function("asInteger", ("Quantity",), "int", _as_integer),
    Function("asApproximateFloat", ("Quantity",), "double", lambda found: float(_value(found))),
    Function("add", _QUANTITIES, "Quantity", lambda one, other: _message(_value(one) + _value(other))),
    Function("add", ("Quantity", "int"), "Quantity", lambda one, other: _message(_value(one) + _value(other))),
    Function("sub", _QUANTITIES, "Quantity", lambda one, other: _message(_value(one) - _value(other))),
    Function("sub", ("Quantity", "int"), "Quantity", lambda one, other: _message(_value(one) - _value(other))),
    Function("isLessThan", _QUANTITIES, "bool", lambda one, other: _value(one) < _value(other)),
    Function("isGreaterThan", _QUANTITIES, "bool", lambda one, other: _value(one) > _value(other)),
    Function("compareTo", _QUANTITIES, "int", lambda one, other: _compared(_value(one), _value(other))),
    Function("semver", ("string",), "Semver", _semver, member=False),
    Function("isSemver", ("string",), "bool", lambda text: _SEMVER.fullmatch(text) is not None, member=False),
    Function("major", ("Semver",), "int", _part(0)),
    Function("minor", ("Semver",), "int", _part(1)),
    Function("patch", ("Semver",), "int", _part(2)),
    Function("isLessThan", _VERSIONS, "bool", lambda one, other: _order(one.text) < _order(other.text)),
    Function("isGreaterThan", _VERSIONS, "bool", lambda one, other: _order(one.text) > _order(other.text)),
    Function("compareTo", _VERSIONS, "int", lambda one, other: _compared(_order(one.text), _order(other.text))),
)
