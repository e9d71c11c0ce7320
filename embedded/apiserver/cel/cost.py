"""The estimated cost of an expression: how much work it may be at most, for values as large as their schemas allow.

Kubernetes refuses a definition whose rules may cost more than a budget. Its estimate is part of its API, so this one
adds up the same amounts. Sources: cel-go `checker/cost.go` and `common/cost.go`, kubernetes
`apiserver/pkg/cel/library/cost.go`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from embedded.apiserver.cel.ast import CheckedExpression, Expr, Loop, Type
from embedded.apiserver.cel.sizes import SizeBounds

MOST = (1 << 64) - 1  # where all counting stops
_TEXT_STEP = 0.1  # of reading one character
_PATTERN_STEP = 0.25  # of one character of a regular expression
_LIST, _MAP, _MESSAGE = 10, 30, 40  # of making one
_CHECK = 350_000  # of asking the authorizer
_FIXED_SIZE = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


@dataclass(frozen=True, slots=True)
class Range:
    """A number between two bounds: a cost, or a size in characters, bytes, items or entries."""

    least: int
    most: int

    def __add__(self, other: Range) -> Range:
        return Range(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def __mul__(self, other: Range) -> Range:
        return Range(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def __or__(self, other: Range) -> Range:
        """What spans both."""
        return Range(min(self.least, other.least), max(self.most, other.most))

    def times(self, factor: float) -> Range:
        return Range(_scaled(self.least, factor), _scaled(self.most, factor))


def _scaled(number: int, factor: float) -> int:
    return min(math.ceil(float(number) * factor), MOST)


_NOTHING, _ONE, _ANY = Range(0, 0), Range(1, 1), Range(0, MOST)


def _sum(costs: Iterable[Range]) -> Range:
    return sum(costs, start=_NOTHING)


@dataclass(frozen=True, slots=True)
class _Entry:
    """The sizes of a collection's keys and values, where the expression itself makes it."""

    kind: str
    key: Range
    value: Range

    def __or__(self, other: _Entry | None) -> _Entry | None:
        return None if other is None else _Entry(self.kind, self.key | other.key, self.value | other.value)


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a macro."""

    path: tuple[str, ...]
    size: Range | None
    entry: _Entry | None = None


@dataclass(frozen=True, slots=True)
class _Node:
    """What is known of a part of an expression: where in the schema its values are, its type and its own size."""

    path: tuple[str, ...]
    type: Type
    own_size: Range | None
    expr: Expr | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """One form of a function with what it is called with."""

    overload: str
    target: _Node | None
    arguments: tuple[_Node, ...]


_Answer = tuple[Range, Range | None]  # the cost of a call without its arguments', and the size of its result


@dataclass(slots=True)
class _Estimate:
    """One estimate. `self` and `oldSelf` are values of the schema with this extent."""

    checked: CheckedExpression
    extent: SizeBounds
    _paths: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _sizes: dict[int, Range] = field(default_factory=dict)
    _entries: dict[int, _Entry] = field(default_factory=dict)
    _locals: dict[str, list[_Local]] = field(default_factory=dict)

    # -- costs -----------------------------------------------------------------------------------------------

    def cost(self, expr: Expr) -> Range:
        return _COSTS[expr.kind](self, expr)

    def _literal(self, _: Expr) -> Range:
        return _NOTHING

    def _ident(self, expr: Expr) -> Range:
        known = self._local(expr.name)
        self._paths[expr.id] = (expr.name,) if known is None else known.path
        return _ONE

    def _select(self, expr: Expr) -> Range:
        assert expr.target is not None
        cost = self.cost(expr.target)
        if expr.test_only:
            return cost
        if self._kind(expr.target) in ("map", "message", "parameter"):
            cost += _ONE
        self._paths[expr.id] = (*self._path(expr.target), expr.name)
        return cost

    def _list(self, expr: Expr) -> Range:
        cost = _sum(self.cost(part) for part in expr.parts)
        self._entries[expr.id] = _Entry("list", _ONE, self._span(expr.parts))
        return cost + Range(_LIST, _LIST)

    def _map(self, expr: Expr) -> Range:
        cost = _sum(self.cost(part) for part in (*expr.keys, *expr.parts))
        self._entries[expr.id] = _Entry("map", self._span(expr.keys), self._span(expr.parts))
        return cost + Range(_MAP, _MAP)

    def _span(self, parts: tuple[Expr, ...]) -> Range:
        span = Range(MOST if parts else 0, 0)
        for part in parts:
            span |= self._size_or_any(part)
        return span

    def _message(self, expr: Expr) -> Range:
        return _sum(self.cost(part) for part in expr.parts) + Range(_MESSAGE, _MESSAGE)

    def _loop(self, expr: Expr) -> Range:
        loop = expr.loop
        assert loop is not None
        cost = self.cost(loop.over) + self.cost(loop.start)
        self._push(loop.total, _Local(self._path(loop.start), self._size(loop.start), self._entry(loop.start)))
        if _is_binding(loop):
            cost += self.cost(loop.result)
            self._locals[loop.total].pop()
            self._copy_sizes(expr, loop.result)
            return cost
        for name, found in zip(loop.variables, self._iterated(loop), strict=True):
            self._push(name, found)
        each = self.cost(loop.condition) + self.cost(loop.step)
        for name in loop.variables:
            self._locals[name].pop()
        cost += self.cost(loop.result)
        self._locals[loop.total].pop()
        rounds = self._size_or_any(loop.over)
        if loop.start.kind == "literal":
            self._set_size(expr, self._size(loop.start))
        elif loop.start.kind in ("list", "map"):
            self._set_size(expr, rounds)
            if (entry := self._entry(loop.step)) is not None:
                self._entries[expr.id] = entry
        return cost + rounds * each

    def _iterated(self, loop: Loop) -> list[_Local]:
        """The variables of a macro: a list's items or a map's keys; of two, the place or key, and the value."""
        entry, path = self._entry(loop.over), self._path(loop.over)
        of_list = (entry.kind if entry else self._kind(loop.over)) == "list"
        key = _Local((*path, "@indices" if of_list else "@keys"), None if entry is None else entry.key)
        value = _Local((*path, "@items" if of_list else "@values"), None if entry is None else entry.value)
        return [key, value] if len(loop.variables) == 2 else [value if of_list else key]

    def _call(self, expr: Expr) -> Range:
        if expr.name == "dyn":
            cost = self.cost(expr.parts[0])
            self._copy_sizes(expr, expr.parts[0])
            return cost + _ONE
        costs = [self.cost(part) for part in expr.parts]
        arguments = tuple(self._node(part) for part in expr.parts)
        overloads = self.checked.overloads.get(expr.id, ())
        if not overloads:
            return _NOTHING
        cost, target = _NOTHING, None
        if expr.target is not None:
            cost, target = self.cost(expr.target), self._node(expr.target)
        span, size = Range(MOST, 0), None
        for overload in overloads:
            found, result = self._form(expr, _Call(overload, target, arguments), costs)
            span |= found
            if result is not None:
                size = result if size is None else size | result
            if overload in ("index_list", "index_map"):
                entry = self._entry(expr.parts[0])
                size = None if entry is None else entry.value
                step = "@items" if overload == "index_list" else "@values"
                self._paths[expr.id] = (*self._path(expr.parts[0]), step)
            size = self._size(expr) if size is None else size
        self._set_size(expr, size)
        return cost + span

    def _form(self, expr: Expr, call: _Call, costs: list[Range]) -> _Answer:
        """Of one form of a function, with what its arguments cost."""
        if call.overload in ("logical_and", "logical_or"):  # which may stop after the first
            return Range(costs[0].least, (costs[0] + costs[1]).most), None
        if call.overload == "conditional":
            first, second = self._entry(expr.parts[1]), self._entry(expr.parts[2])
            if first is not None and (both := first | second) is not None:
                self._entries[expr.id] = both
            sizes = [_own(node) for node in call.arguments[1:]]
            return costs[0] + (costs[1] | costs[2]), sizes[0] | sizes[1]
        if expr.name in _FUNCTIONS:
            answer = _FUNCTIONS[expr.name](self, call)
        elif call.overload in _OVERLOADS:
            answer = _OVERLOADS[call.overload](self, call)
        else:
            answer = None
        if call.overload in ("add_string", "add_bytes", "add_list"):
            first, second = self._entry(expr.parts[0]), self._entry(expr.parts[1])
            if first is not None and (both := first | second) is not None:
                self._entries[expr.id] = both
        cost, size = answer or (_ONE, None)
        return cost + _sum(costs), size

    # -- sizes -----------------------------------------------------------------------------------------------

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _push(self, name: str, found: _Local) -> None:
        self._locals.setdefault(name, []).append(found)

    def _path(self, expr: Expr) -> tuple[str, ...]:
        if expr.kind == "ident" and (known := self._local(expr.name)) is not None:
            return known.path
        return self._paths.get(expr.id, ())

    def _kind(self, expr: Expr) -> str:
        """Of its type; of a list of lists, of whose items the engine knows nothing, by the schema."""
        kind, path = self.checked.type(expr).kind, self._path(expr)
        found = self.extent.at(path[1:]) if kind == "dyn" and path else None
        if found is None:
            return kind
        return "message" if found.fields else "map" if found.keys else "list" if found.items else kind

    def _node(self, expr: Expr) -> _Node:
        path = self._path(expr)
        if path[:1] in (("__result__",), ("@result",)):
            path = ()
        return _Node(path, self.checked.type(expr), self._size(expr), expr)

    def _size(self, expr: Expr) -> Range | None:
        if (known := self._sizes.get(expr.id)) is not None:
            return known
        if expr.kind == "literal" and expr.size is not None:
            return Range(expr.size, expr.size)
        if expr.kind in ("list", "map"):
            return Range(len(expr.parts), len(expr.parts))
        if (found := self.size_at(self._path(expr))) is not None:
            self._sizes[expr.id] = found
            return found
        if _has_fixed_size(self.checked.type(expr)):
            return _ONE
        known_local = self._local(expr.name) if expr.kind == "ident" else None
        return None if known_local is None else known_local.size

    def size_at(self, path: tuple[str, ...]) -> Range | None:
        """By the schema. The first step is the variable, of which there is one schema."""
        found = self.extent.at(path[1:]) if path else None
        return None if found is None else Range(0, found.most_elements)

    def size_of(self, node: _Node) -> Range:
        if node.own_size is not None:
            return node.own_size
        return self.size_at(node.path) or _ANY

    def items_of(self, node: _Node) -> _Node | None:
        """The items of a list (or, as in Kubernetes, the keys of a map); None of what has no parts."""
        if not node.type.parameters:
            return None
        return _Node((*node.path, "@items") if node.path else (), node.type.parameters[0], None)

    def _size_or_any(self, expr: Expr) -> Range:
        found = self._size(expr)
        return _ANY if found is None else found

    def _set_size(self, expr: Expr, size: Range | None) -> None:
        if size is not None:
            self._sizes[expr.id] = size

    def _entry(self, expr: Expr) -> _Entry | None:
        if (known := self._entries.get(expr.id)) is not None:
            return known
        found = self._local(expr.name) if expr.kind == "ident" else None
        return None if found is None else found.entry

    def _copy_sizes(self, to: Expr, source: Expr) -> None:
        self._set_size(to, self._size(source))
        if (entry := self._entry(source)) is not None:
            self._entries[to.id] = entry


def _is_binding(loop: Loop) -> bool:
    """Whether it is `cel.bind`, which goes round nothing."""
    nowhere = loop.over.kind == "list" and not loop.over.parts
    return nowhere and loop.condition.kind == "literal" and loop.total not in ("__result__", "@result")


def _has_fixed_size(kind: Type) -> bool:
    if kind.kind == "abstract" and kind.name == "optional_type":
        return _has_fixed_size(kind.parameters[0])
    return kind.kind in _FIXED_SIZE


def _own(node: _Node) -> Range:
    return _ANY if node.own_size is None else node.own_size


_COSTS: dict[str, Callable[[_Estimate, Expr], Range]] = {
    "literal": _Estimate._literal,
    "ident": _Estimate._ident,
    "select": _Estimate._select,
    "call": _Estimate._call,
    "list": _Estimate._list,
    "map": _Estimate._map,
    "message": _Estimate._message,
    "loop": _Estimate._loop,
}


def estimated_cost(checked: CheckedExpression, root: Expr, extent: SizeBounds) -> int:
    """The most that an expression, or the part of it that is `root`, may cost where `self` has this extent."""
    return _Estimate(checked, extent).cost(root).most


# -- functions that Kubernetes adds, by name -------------------------------------------------------------------

_Function = Callable[[_Estimate, _Call], _Answer | None]


def _nominal(_: _Estimate, __: _Call) -> _Answer:
    return _ONE, None


def _reads_argument(passes: int, whole: bool = False) -> _Function:
    """One that reads its only argument so many times; `whole`: and answers as much."""

    def answer(it: _Estimate, call: _Call) -> _Answer | None:
        if not call.arguments:
            return None
        size = it.size_of(call.arguments[0])
        return size.times(passes * _TEXT_STEP), size if whole else None

    return answer


def _reads_target(it: _Estimate, call: _Call) -> _Answer | None:
    if call.target is None:
        return None
    size = it.size_of(call.target)
    return size.times(_TEXT_STEP), size


def _compares_items(it: _Estimate, call: _Call) -> _Answer | None:
    if call.target is None:
        return None
    items, size = it.items_of(call.target), it.size_of(call.target)
    if items is None:  # a text, whose `indexOf` this is
        return size.times(_TEXT_STEP), None
    each = _ONE + it.size_of(items).times(_TEXT_STEP) if items.type.kind in ("string", "bytes") else _ONE
    return size * each, None


def _replaced(it: _Estimate, call: _Call) -> _Answer | None:
    if call.target is None or len(call.arguments) < 2:
        return None
    size, out, into = (it.size_of(node) for node in (call.target, *call.arguments[:2]))
    if out.least == 0:  # an empty text is found between all characters
        most = min(size.most + 1, MOST) * into.most + size.most
    elif into.most <= out.least:
        most = size.most
    else:
        most = math.ceil(size.most / out.least) * into.most
    if out.most == 0:
        least = min(size.least + 1, MOST) * into.least + size.least
    elif out.most <= into.least:
        least = size.least
    else:
        least = math.ceil(size.least / out.most) * into.least
    return size.times(2 * _TEXT_STEP), Range(min(least, MOST), min(most, MOST))


def _split(it: _Estimate, call: _Call) -> _Answer | None:
    if call.target is None:
        return None
    size = it.size_of(call.target)
    limit = call.arguments[1].expr if len(call.arguments) > 1 else None
    given = None if limit is None else limit.constant
    return size.times(2 * _TEXT_STEP), Range(0, size.most if given is None else given % (MOST + 1))


def _joined(it: _Estimate, call: _Call) -> _Answer | None:
    if call.target is None:
        return None
    count, items = it.size_of(call.target), it.items_of(call.target)
    size = _NOTHING if items is None else count * it.size_of(items)
    if call.arguments:
        size += it.size_of(call.arguments[0]) * Range(max(count.least - 1, 0), max(count.most - 1, 0))
    return size.times(_TEXT_STEP), size


def _found(it: _Estimate, call: _Call) -> _Answer | None:
    if call.target is None or not call.arguments:
        return None
    size = it.size_of(call.target)
    return _searched(size, it.size_of(call.arguments[0])), Range(0, size.most)


def _searched(text: Range, pattern: Range) -> Range:
    return (text + _ONE).times(_TEXT_STEP) * pattern.times(_PATTERN_STEP)


def _parsed_address(it: _Estimate, call: _Call) -> _Answer | None:
    return (_ONE, None) if call.target is not None else _reads_argument(1)(it, call)


def _contains_address(network: bool) -> _Function:
    address = Range(4, 16)

    def answer(it: _Estimate, call: _Call) -> _Answer | None:
        if not call.arguments:
            return None
        cost = (address + address).times(_TEXT_STEP)
        if network:
            cost += address.times(_TEXT_STEP) + _ONE
        if call.arguments[0].type.kind == "string":
            cost += it.size_of(call.arguments[0]).times(_TEXT_STEP)
        return cost, None

    return answer


def _selector(it: _Estimate, call: _Call) -> _Answer | None:
    if len(call.arguments) != 1:
        return None
    size = it.size_of(call.arguments[0])
    requirements = size.times(0.5).times(_LIST + _MESSAGE)
    return Range(_LIST, _LIST) + size.times(_TEXT_STEP) + requirements, None


def _of_sets(factor: int) -> _Function:
    def answer(it: _Estimate, call: _Call) -> _Answer | None:
        if len(call.arguments) != 2:
            return None
        sizes = [it.size_of(node) for node in call.arguments]
        return (sizes[0] * sizes[1]).times(factor) + _ONE, None

    return answer


_OPAQUE = frozenset({"kubernetes.IP", "kubernetes.CIDR", "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL"})


def _equal(it: _Estimate, call: _Call) -> _Answer | None:
    kinds = [node.type for node in call.arguments]
    if kinds[0] == kinds[1] and kinds[0].name in _OPAQUE:
        return _ONE, None
    return _compared(it, call)


_NOMINAL = (
    *("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason", "error"),
    *("errored", "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
    *("isLinkLocalUnicast", "isGlobalUnicast", "sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan"),
    *("isLessThan", "compareTo", "add", "sub", "major", "minor", "patch", "getScheme", "getHostname", "getHost"),
    *("getPort", "getEscapedPath", "getQuery"),
)
_FUNCTIONS: dict[str, _Function] = {
    **dict.fromkeys(_NOMINAL, _nominal),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _compares_items),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _reads_target),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _reads_argument(1)),
    **dict.fromkeys(("find", "findAll"), _found),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _of_sets(1)),
    "sets.equivalent": _of_sets(2),
    "check": lambda _, __: (Range(_CHECK, _CHECK), None),
    "containsCIDR": _contains_address(network=True),
    "containsIP": _contains_address(network=False),
    "ip": _parsed_address,
    "ip.isCanonical": _reads_argument(2),
    "join": _joined,
    "replace": _replaced,
    "split": _split,
    "url": _reads_argument(1, whole=True),
    "_==_": _equal,
}


# -- functions of the language, by overload --------------------------------------------------------------------


def _formatted(_: _Estimate, call: _Call) -> _Answer | None:
    return None if call.target is None else (_own(call.target).times(_TEXT_STEP), None)


def _converted(change: Callable[[Range], Range]) -> _Function:
    """Each character is read; `change` says how long the result is."""

    def answer(_: _Estimate, call: _Call) -> _Answer | None:
        size = _own(call.arguments[0])
        return size.times(_TEXT_STEP), change(size)

    return answer


def _starts(_: _Estimate, call: _Call) -> _Answer | None:
    return (_own(call.arguments[0]).times(_TEXT_STEP), None) if len(call.arguments) == 1 else None


def _in_list(_: _Estimate, call: _Call) -> _Answer | None:
    return _own(call.arguments[1]), None


def _matches(_: _Estimate, call: _Call) -> _Answer | None:
    if call.target is None or len(call.arguments) != 1:
        return None
    return _searched(_own(call.target), _own(call.arguments[0])), None


def _contains(_: _Estimate, call: _Call) -> _Answer | None:
    if call.target is None or len(call.arguments) != 1:
        return None
    return _own(call.target).times(_TEXT_STEP) * _own(call.arguments[0]).times(_TEXT_STEP), None


def _added(_: _Estimate, call: _Call) -> _Answer | None:
    size = _own(call.arguments[0]) + _own(call.arguments[1])
    return (_ONE if call.overload == "add_list" else size.times(_TEXT_STEP)), size


def _compared(_: _Estimate, call: _Call) -> _Answer | None:
    most = min(_own(node).most for node in call.arguments)
    return Range(min(most, 1), most).times(_TEXT_STEP), None


_ORDERS = ("less", "greater", "less_equals", "greater_equals")
_OVERLOADS: dict[str, _Function] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _starts),
    **dict.fromkeys(("add_string", "add_bytes", "add_list"), _added),
    **dict.fromkeys(
        (
            f"{order}_{kind}"
            for order in ("less", "greater", "less_equals", "greater_equals")
            for kind in ("string", "bytes")
        ),
        _compared,
    ),
    "contains_string": _contains,
    "equals": _compared,
    "in_list": _in_list,
    "matches_string": _matches,
    "not_equals": _compared,
    "string_format": _formatted,
    "strings_quote": _converted(lambda size: Range(size.least + 2, size.most * 2 + 2 & MOST)),
    "string_to_bytes": _converted(lambda size: Range(size.least, size.most * 4 & MOST)),
    "bytes_to_string": _converted(lambda size: Range(size.least // 4, size.most)),
}
