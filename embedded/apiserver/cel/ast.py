"""A checked expression as the engine writes it down: cel.expr.CheckedExpr of the CEL specification, in protobuf.

Source: cel-spec `proto/cel/expr/checked.proto` and `syntax.proto`, for the field numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from embedded.apiserver.protobuf.reading import entries

_ANY_VALUE, _REFERENCES, _TYPES, _EXPRESSION = 2, 2, 3, 4
_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN = {1: "any", 2: "timestamp", 3: "duration"}
_SCALAR_CONSTANTS = frozenset({1, 2, 3, 4, 8, 9})  # all but texts (6) and bytes (7)


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an expression: its kind, such as `list`, and what it is made of."""

    kind: str
    name: str = ""  # of a message or of an abstract type
    parameters: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A comprehension, which macros such as `all` and `cel.bind` become."""

    variables: tuple[str, ...]  # one, or two
    over: Expr
    total: str  # the variable that collects the result
    start: Expr
    condition: Expr
    step: Expr
    result: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """One part of an expression. `kind` is literal, ident, select, call, list, map, message or loop."""

    id: int
    kind: str
    name: str = ""  # of a variable, a field or a function
    target: Expr | None = None  # what a field is selected of, or a member function is called on
    parts: tuple[Expr, ...] = ()  # arguments, items, or the values of fields
    keys: tuple[Expr, ...] = ()  # of a map
    size: int | None = None  # of a literal, in characters, bytes, or 1
    constant: int | None = None  # the value of a literal whole number
    text: str | None = None  # the value of a literal text
    test_only: bool = False  # `has(…)`
    loop: Loop | None = None

    def all_parts(self) -> Iterator[Expr]:
        """It and everything within it."""
        yield self
        loop = self.loop
        around = (loop.over, loop.start, loop.condition, loop.step, loop.result) if loop else ()
        for part in (*((self.target,) if self.target else ()), *self.keys, *self.parts, *around):
            yield from part.all_parts()


@dataclass(frozen=True, slots=True)
class CheckedExpression:
    """An expression, with the overloads and types of its parts by their ids."""

    root: Expr
    overloads: dict[int, tuple[str, ...]]
    types: dict[int, Type]

    def type(self, part: Expr) -> Type:
        return self.types.get(part.id, Type("dyn"))


def read_checked(data: bytes) -> CheckedExpression:
    """What `Expression.serialize()` of the engine gives: a google.protobuf.Any that holds a CheckedExpr."""
    found = list(entries(dict(entries(data))[_ANY_VALUE]))
    references = (dict(entries(raw)) for number, raw in found if number == _REFERENCES)
    types = (dict(entries(raw)) for number, raw in found if number == _TYPES)
    return CheckedExpression(
        _expr(next(raw for number, raw in found if number == _EXPRESSION)),
        {entry[1]: tuple(_text(raw) for raw in _all(entry.get(2, b""), 3)) for entry in references},
        {entry[1]: _type(entry.get(2, b"")) for entry in types},
    )


def _all(data: bytes, wanted: int) -> Iterable[Any]:
    return (raw for number, raw in entries(data) if number == wanted)


def _only(data: bytes) -> tuple[int, Any]:
    """The first field of a message, which has one at most."""
    return next(iter(entries(data)), (1, b""))


def _text(raw: Any) -> str:
    return bytes(raw).decode(errors="replace")


def _type(data: bytes) -> Type:
    number, raw = _only(data)
    match number:
        case 2:
            return Type("null")
        case 3:
            return Type(_PRIMITIVES.get(raw, "dyn"))
        case 5:
            return Type(_WELL_KNOWN.get(raw, "any"))
        case 6:
            return Type("list", parameters=tuple(_type(inner) for inner in _all(raw, 1)))
        case 7:
            parts = dict(entries(raw))
            return Type("map", parameters=(_type(parts.get(1, b"")), _type(parts.get(2, b""))))
        case 9:
            return Type("message", _text(raw))
        case 10:
            return Type("parameter", _text(raw))
        case 14:
            name = next((_text(inner) for inner in _all(raw, 1)), "")
            return Type("abstract", name, tuple(_type(inner) for inner in _all(raw, 2)))
    return Type("wrapper" if number == 4 else "type" if number == 11 else "dyn")


def _expr(data: bytes) -> Expr:
    identity, number, raw = 0, 0, b""
    for field, found in entries(data):
        if field == 2:
            identity = found
        else:
            number, raw = field, found
    match number:
        case 3:
            return _literal(identity, raw)
        case 4:
            return Expr(identity, "ident", _first_text(raw, 1))
        case 5:
            operand = next(_expr(inner) for inner in _all(raw, 1))
            return Expr(identity, "select", _first_text(raw, 2), operand, test_only=bool(dict(entries(raw)).get(3)))
        case 6:
            target = next((_expr(inner) for inner in _all(raw, 1)), None)
            arguments = tuple(_expr(inner) for inner in _all(raw, 3))
            return Expr(identity, "call", _first_text(raw, 2), target, arguments)
        case 7:
            return Expr(identity, "list", parts=tuple(_expr(inner) for inner in _all(raw, 1)))
        case 8:
            return _made(identity, raw)
    return Expr(identity, "loop", loop=_loop(raw))


def _first_text(data: bytes, number: int) -> str:
    return next((_text(raw) for raw in _all(data, number)), "")


def _literal(identity: int, data: bytes) -> Expr:
    number, raw = _only(data)
    if number in _SCALAR_CONSTANTS:
        return Expr(identity, "literal", size=1, constant=_signed(raw) if number == 3 and raw else None)
    if number == 7:
        return Expr(identity, "literal", size=len(raw))
    return Expr(identity, "literal", size=len(_text(raw)), text=_text(raw))


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _made(identity: int, data: bytes) -> Expr:
    """A message where it has a name, else a map."""
    found = [dict(entries(raw)) for raw in _all(data, 2)]
    values = tuple(_expr(entry[4]) for entry in found)
    keys = tuple(_expr(entry[3]) for entry in found if 3 in entry)
    return Expr(identity, "message" if _first_text(data, 1) else "map", parts=values, keys=keys)


def _loop(data: bytes) -> Loop:
    found = dict(entries(data))
    over, start, condition, step, result = (_expr(found[number]) for number in (2, 4, 5, 6, 7))
    variables = tuple(_text(found[number]) for number in (1, 8) if found.get(number))
    return Loop(variables, over, _text(found[3]), start, condition, step, result)
