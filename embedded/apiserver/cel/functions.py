"""Functions that Kubernetes adds to CEL, for lists, sets and texts.

https://kubernetes.io/docs/reference/using-api/cel/#cel-options-language-features-and-libraries
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True)
class Function:
    """One form of a function; types by name, as in `messages`. A member's first parameter stands before the dot.

    A ValueError of `does` is an error of the expression that calls it.
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    does: Callable[..., Any]
    member: bool = True


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [match[0] for match in _compiled(pattern).finditer(text)]
    return found if most < 0 else found[:most]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"Illegal regex: {error}") from None


def _is_sorted(items: list[Any]) -> bool:
    return all(before <= after for before, after in pairwise(items))


def _sum(items: list[Any]) -> Any:
    return sum(items[1:], start=items[0]) if items else 0


def _min(items: list[Any]) -> Any:
    if not items:
        raise ValueError("min called on empty list")
    return min(items)


def _max(items: list[Any]) -> Any:
    if not items:
        raise ValueError("max called on empty list")
    return max(items)


def _contains(items: list[Any], part: list[Any]) -> bool:
    return all(item in items for item in part)


def _equivalent(one: list[Any], other: list[Any]) -> bool:
    return _contains(one, other) and _contains(other, one)


def _intersects(one: list[Any], other: list[Any]) -> bool:
    return any(item in other for item in one)


FUNCTIONS = (
    Function("find", ("string", "string"), "string", _find),
    Function("findAll", ("string", "string"), "[]string", _find_all),
    Function("findAll", ("string", "string", "int"), "[]string", _find_all),
    Function("isSorted", ("[]dyn",), "bool", _is_sorted),
    Function("sum", ("[]dyn",), "dyn", _sum),
    Function("min", ("[]dyn",), "dyn", _min),
    Function("max", ("[]dyn",), "dyn", _max),
    Function("sets.contains", ("[]dyn", "[]dyn"), "bool", _contains, member=False),
    Function("sets.equivalent", ("[]dyn", "[]dyn"), "bool", _equivalent, member=False),
    Function("sets.intersects", ("[]dyn", "[]dyn"), "bool", _intersects, member=False),
)
