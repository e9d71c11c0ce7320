"""CEL rules in the schemas of custom resources, compiled: each against the type of the field it stands at.

Source: kubernetes `apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from embedded.apiserver.apiextensions.rule_costs import RuleExpression, cost_errors, times_below
from embedded.apiserver.apiextensions.rule_paths import InvalidPath, field_path
from embedded.apiserver.apiextensions.validation_rules import EVALUATED, Node, Rule
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value
from embedded.apiserver.apimachinery.objects import Object, decode_object, encode
from embedded.apiserver.cel import expressions, patterns
from embedded.apiserver.cel.ast import read_checked
from embedded.apiserver.cel.expressions import CompileError, Environment, Program
from embedded.apiserver.cel.messages import pool_of
from embedded.apiserver.cel.schema_types import PACKAGE, Shape, Shapes
from embedded.apiserver.cel.sizes import SizeBounds, extent_of

RULES = "x-kubernetes-validations"
_TAKE_PATTERNS = ("matches", "find", "findAll")
_MAYBE_OLD = "cel.bind(oldSelf, __changed ? optional.of(__old) : optional.none(), {text}\n)"
_MAYBE_SELF = "cel.bind(oldSelf, optional.of(self), {text}\n)"


def rules_of(schema: Object | None) -> Node | None:
    """The rules of a version's schema that nothing is wrong with; None where it has none."""
    text = b"" if schema is None else encode(schema)
    return _compiled(text)[0] if RULES.encode() in text else None


def compile_errors(path: str, schema: Object) -> list[FieldError]:
    """What is wrong with the expressions of a schema that is sound otherwise."""
    text = encode(schema)
    if RULES.encode() not in text:
        return []
    return [_within(path, error) for error in _compiled(text)[1]]


def budget_errors(path: str, schema: Object) -> list[FieldError]:
    """Where the rules of a schema may cost too much."""
    text = encode(schema)
    if RULES.encode() not in text:
        return []
    return [_within(path, error) for error in cost_errors(_compiled(text)[2])]


def _within(path: str, error: FieldError) -> FieldError:
    return FieldError(f"{path}{error.field}", error.reason, error.message)


@lru_cache(maxsize=128)
def _compiled(text: bytes) -> tuple[Node | None, tuple[FieldError, ...], tuple[RuleExpression, ...]]:
    schema = decode_object(text)
    shapes = Shapes()
    shape = shapes.of(schema, root=True)
    compiler = _Compiler(pool_of(shapes.messages, PACKAGE))
    node = None if shape is None else compiler.node("", schema, shape, _Around(root=True))
    return node, tuple(compiler.faults), tuple(compiler.costed)


@dataclass(frozen=True, slots=True)
class _Around:
    """What a schema is in. `uncorrelated` is where below nothing is known again from an earlier object; empty above
    such a place. `times` is how many values it has in one object, None without bounds."""

    uncorrelated: str = ""
    times: int | None = 1
    root: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a rule is."""

    path: str
    extent: SizeBounds | None
    times: int | None


class _Compiler:
    """Compiles the rules of one schema, and notes what is wrong with them and what they cost."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.faults: list[FieldError] = []
        self.costed: list[RuleExpression] = []

    def node(self, path: str, schema: Object, shape: Shape, around: _Around) -> Node | None:
        rules = tuple(self._rules(f"{path}.{RULES}", schema, shape, around))
        keys = _keys(schema)
        below = _Around(around.uncorrelated or (path if keys is None else ""), times_below(schema, around.times))
        children = shape.children or {}
        for key, child in (schema.get("properties") or {}).items():
            if key not in children and child.get(RULES):
                self.faults.append(_unsupported(f"{path}.properties[{key}].{RULES}", child))
        properties = {
            key: node
            for key, child in (schema.get("properties") or {}).items()
            if key in children and (node := self.node(f"{path}.properties[{key}]", child, children[key], below))
        }
        inner = None
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict) and "items" in children and not properties:
                inner = self.node(f"{path}.{key}", schema[key], children["items"], below)
        if not (rules or properties or inner):
            return None
        node = Node(str(schema.get("type") or ""), shape, rules, properties, inner, keys)
        if schema.get("default") is not None:
            self.faults += [FieldError(f"{path}.default", *told) for told in _held_against(node, schema["default"])]
        return node

    def _rules(self, path: str, schema: Object, shape: Shape, around: _Around) -> Iterator[Rule]:
        found = schema.get(RULES) or ()
        if not found:
            return
        kind = expressions.type_of(shape.type, PACKAGE)
        plain = Environment({"self": kind}, self._pool)
        both = Environment({"self": kind, "oldSelf": kind}, self._pool, binds=True)
        extent = extent_of(schema, root=around.root or bool(schema.get("x-kubernetes-embedded-resource")))
        for index, rule in enumerate(found):
            here = _Place(f"{path}[{index}]", extent, around.times)
            made = self._rule(here, rule, schema, (plain, both))
            if made is None:
                continue
            if made.compares and (within := around.uncorrelated):
                detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                self.faults.append(bad_value(f"{path}[{index}].rule", rule["rule"], detail))
            elif rule.get("optionalOldSelf") is not None and not made.compares:
                detail = "may not be set if oldSelf is not used in rule"
                self.faults.append(bad_value(f"{path}[{index}].optionalOldSelf", rule["optionalOldSelf"], detail))
            yield made

    def _rule(self, at: _Place, rule: Object, schema: Object, known: tuple[Environment, Environment]) -> Rule | None:
        maybe, path = bool(rule.get("optionalOldSelf")), at.path
        try:
            program, compares, checked = _program(rule["rule"], known, maybe)
        except CompileError as error:
            self.faults.append(bad_value(f"{path}.rule", rule, f"compilation failed: {error}"))
            return None
        if expressions.shown(program.type) != "bool":
            self.faults.append(bad_value(f"{path}.rule", rule, "cel expression must evaluate to a bool"))
        self._observe(at, "rule", checked, compares and maybe)
        told = self._told(at, rule, known, maybe)
        try:
            where = field_path(rule.get("fieldPath") or "", schema)
        except InvalidPath:
            return None  # which is told with the other faults of its form
        return Rule(program, told, rule, where, compares, compares and maybe)

    def _observe(self, at: _Place, key: str, checked: Any, bound: bool) -> None:
        if at.extent is not None:
            self.costed.append(RuleExpression(f"{at.path}.{key}", checked, bound, at.extent, at.times))

    def _told(self, at: _Place, rule: Object, known: tuple[Environment, Environment], maybe: bool) -> Program | None:
        text, path = rule.get("messageExpression") or "", at.path
        if not text:
            return None
        try:
            program, compares, checked = _program(text, known, maybe)
        except CompileError as error:
            detail = f"messageExpression compilation failed: {error}"
            self.faults.append(bad_value(f"{path}.messageExpression", rule, detail))
            return None
        if expressions.shown(program.type) != "string":
            detail = "messageExpression must evaluate to a string"
            self.faults.append(bad_value(f"{path}.messageExpression", rule, detail))
        self._observe(at, "messageExpression", checked, compares and maybe)
        return program


def _held_against(node: Node, default: Any) -> Iterator[tuple[str, str]]:
    return ((error.reason, error.message) for error in node.errors(default, None))


def _unsupported(path: str, schema: Object) -> FieldError:
    free = "true" if schema.get("x-kubernetes-preserve-unknown-fields") else "false"
    what = f"type: '{schema.get('type') or ''}' x-kubernetes-preserve-unknown-fields: '{free}'"
    return bad_value(path, "", f"rule declared on schema that does not support validation rules {what}")


def _program(text: str, known: tuple[Environment, Environment], maybe: bool) -> tuple[Program, bool, Any]:
    """The program, whether it names oldSelf, and the expression as its types were checked; raises CompileError."""
    plain, both = known
    try:
        checked, compares = plain.compile(text), False
    except CompileError as error:
        if "undeclared reference to 'oldSelf'" not in str(error) or "undeclared reference to 'bind'" in str(error):
            raise
        checked, compares = both.compile(_MAYBE_SELF.format(text=text) if maybe else text), True
    if any(name in text for name in _TAKE_PATTERNS):
        _check_patterns(checked)
    computed = _MAYBE_OLD.format(text=text) if maybe else text
    return Program(text, EVALUATED.compile(computed).expression, checked.type), compares, checked.expression


def _check_patterns(checked: Any) -> None:
    """Raises CompileError for a regular expression that stands in the text and is none."""
    for part in read_checked(checked.expression.serialize()).root.all_parts():
        pattern = part.parts[0].text if part.kind == "call" and part.name in _TAKE_PATTERNS and part.parts else None
        if pattern is not None and (fault := patterns.fault(pattern)):
            raise CompileError(f"invalid {part.name} argument: {fault}")


def _keys(schema: Object) -> tuple[str, ...] | None:
    """By what the parts of a value are known again: items by their keys, fields by their names."""
    if schema.get("type") == "array":
        listed = schema.get("x-kubernetes-list-type") == "map"
        return tuple(schema.get("x-kubernetes-list-map-keys") or ()) if listed else None
    return None if schema.get("x-kubernetes-map-type") == "atomic" else ()
