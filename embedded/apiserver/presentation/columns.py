"""Columns of `kubectl get`: a name, and how to read a cell from an object; and the cells that many types share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from embedded.apiserver.apimachinery import jsonpath
from embedded.apiserver.apimachinery.durations import human_duration
from embedded.apiserver.apimachinery.objects import Object, dig, encode, name_of, parse_time

Cell = Callable[[Object, float], Any]  # of an object, at a time
NONE, UNKNOWN = "<none>", "<unknown>"
_OPERATORS = {"In": "in", "NotIn": "notin"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column; priority 1 shows only with `-o wide`."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""


def since(text: str | None, now: float) -> str:
    """How long ago a time stamp is."""
    moment = parse_time(text)
    return UNKNOWN if moment is None else human_duration(now - moment)


def path(where: str, default: Any = "") -> Cell:
    return lambda obj, _: found if (found := dig(obj, where)) not in (None, "") else default


def text(where: str, default: str) -> Cell:
    return lambda obj, _: default if (found := dig(obj, where)) is None else str(found)


def entries(*keys: str) -> Cell:
    """How many things the lists or maps hold together."""
    return lambda obj, _: sum(len(obj.get(key) or ()) for key in keys)


def labels(where: str) -> Cell:
    return lambda obj, _: label_text(dig(obj, where))


def label_text(found: Object | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def selector(where: str) -> Cell:
    """A LabelSelector in the form the command line takes."""
    return lambda obj, _: selector_text(dig(obj, where)) or NONE


def selector_text(found: Object | None) -> str:
    """A LabelSelector in the form the command line takes; empty for one that asks nothing."""
    found = found or {}
    terms = [f"{key}={value}" for key, value in sorted((found.get("matchLabels") or {}).items())]
    return ",".join([*terms, *map(_expression, found.get("matchExpressions") or ())])


def _expression(term: Object) -> str:
    key, operator = str(term.get("key")), term.get("operator")
    if operator in _OPERATORS:
        return f"{key} {_OPERATORS[operator]} ({','.join(sorted(term.get('values') or ()))})"
    return f"!{key}" if operator == "DoesNotExist" else key


def custom_column(name: str, kind: str, where: str, priority: int, description: str) -> Column:
    """A printer column of a definition; of several values at the path, the first is shown.

    Source: kubernetes `apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go`.
    """

    def cell(obj: Object, now: float) -> Any:
        found = jsonpath.find(where, obj)
        return _typed(kind, found[0], now) if found else None

    told = description or f"Custom resource definition column (in JSONPath format): {where}"
    return Column(name, cell, kind, priority, description=told)


def _typed(kind: str, value: Any, now: float) -> Any:
    """The cell for a value, None where it is not of the column's type."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "date":
            return _date(value, now) if isinstance(value, str) else None
        case "string":
            return value if isinstance(value, str) or value is None else encode(value).decode()
        case "boolean":
            return value if isinstance(value, bool) else None
        case "integer":
            return int(value) if number else None
    return value if number else None


def _date(value: str, now: float) -> str:
    return "<invalid>" if parse_time(value) is None else since(value, now)


NAME = Column("Name", lambda obj, _: name_of(obj), format="name", description="Name must be unique within a namespace.")
AGE = Column(
    "Age",
    lambda obj, now: since(dig(obj, "metadata.creationTimestamp"), now),
    description="Time since the object was created.",
)
