"""CEL rules of custom resources, `x-kubernetes-validations`, held against objects.

Source: kubernetes `apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from embedded.apiserver.apiextensions.schema import NOWHERE
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, duplicate, not_allowed, required
from embedded.apiserver.apimachinery.objects import Object, encode
from embedded.apiserver.cel import expressions
from embedded.apiserver.cel.expressions import Environment, EvaluationError, Program
from embedded.apiserver.cel.schema_types import Shape

_BLOCKING = frozenset(f"FieldValue{kind}" for kind in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"))
_UNCHECKED = FieldError(
    NOWHERE,
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)
_LONGEST_MESSAGE_BYTES = 5 * 1024
EVALUATED = Environment(
    {"self": expressions.DYN, "oldSelf": expressions.DYN, "__old": expressions.DYN, "__changed": expressions.BOOL},
    binds=True,
)
"""In which every rule is computed; a rule whose old value is optional makes it of the latter two."""
_NONE: Any = object()  # in place of the earlier value of what had none


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of one schema."""

    program: Program
    told: Program | None
    found: Object  # as it is written
    path: str  # where it says the fault is, below its own place
    compares: bool  # with oldSelf
    compares_always: bool  # also with none


@dataclass(frozen=True, slots=True)
class Node:
    """A schema with rules, at it or below."""

    kind: str
    shape: Shape
    rules: tuple[Rule, ...]
    properties: dict[str, Node]
    inner: Node | None  # of items or additional properties
    keys: tuple[str, ...] | None  # by which items are known again; None where nothing below is

    def errors(self, obj: Object, old: Object | None) -> Iterator[FieldError]:
        """What the rules hold against an object; rules about what `old` has as well are not heard."""
        yield from self._errors("", obj, _NONE if old is None else old, False)

    def _errors(self, path: str, value: Any, old: Any, unchanged: bool) -> Iterator[FieldError]:
        if value is None:
            return
        unchanged = unchanged or (old is not _NONE and encode(value, order="sorted") == encode(old, order="sorted"))
        if self.rules:
            yield from self._own_errors(path, value, old, unchanged)
        if isinstance(value, dict):
            yield from self._map_errors(path, value, old if isinstance(old, dict) else {}, unchanged)
        elif isinstance(value, list) and self.inner is not None:
            known = self._known(old) if isinstance(old, list) else {}
            for index, item in enumerate(value):
                before = known.get(self._identity(item), _NONE)
                yield from self.inner._errors(f"{path}[{index}]", item, before, unchanged)

    def _map_errors(self, path: str, value: Object, old: Object, unchanged: bool) -> Iterator[FieldError]:
        if self.keys is None:
            old = {}
        for key, item in value.items():
            node = self.properties.get(key)
            if node is not None:
                yield from node._errors(f"{path}.{key}" if path else key, item, old.get(key, _NONE), unchanged)
            elif self.inner is not None:
                yield from self.inner._errors(f"{path}[{key}]", item, old.get(key, _NONE), unchanged)

    def _known(self, old: list[Any]) -> dict[bytes | None, Any]:
        return {key: item for item in old if (key := self._identity(item)) is not None}

    def _identity(self, item: Any) -> bytes | None:
        if not self.keys or not isinstance(item, dict):
            return None
        return encode({key: item[key] for key in self.keys if key in item}, order="sorted")

    def _own_errors(self, path: str, value: Any, old: Any, unchanged: bool) -> Iterator[FieldError]:
        has_old = old is not _NONE and old is not None
        names = {"self": self._made(value), "__changed": has_old}
        if has_old and any(rule.compares for rule in self.rules):
            names["oldSelf"] = names["__old"] = self._made(old)
        activation = EVALUATED.activation(names)
        for rule in self.rules:
            if rule.compares and not has_old and not rule.compares_always:
                continue
            error = self._verdict(rule, path or NOWHERE, activation)
            if error is not None and (rule.compares or not unchanged):
                yield error

    def _made(self, value: Any) -> Any:
        return value if self.shape.convert is None else self.shape.convert(value)

    def _verdict(self, rule: Rule, path: str, activation: expressions.Activation) -> FieldError | None:
        try:
            if rule.program.value(activation) is True:
                return None
        except EvaluationError as error:
            return bad_value(path, self.kind, _failure(str(error), rule.found))
        where = rule.path if path == NOWHERE and rule.path else f"{path}.{rule.path}" if rule.path else path
        return _of_reason(where, self.kind, _message(rule, activation), rule.found.get("reason"))


def _failure(error: str, rule: Object) -> str:
    about = _short(rule)
    if error.startswith("no such overload"):
        what = "call arguments did not match a supported operator, function or macro signature"
        return f"'{error}': {what} for rule: {about}"
    if error.startswith("operation cancelled: actual cost limit exceeded"):
        return f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {about}"
    return f"{error} evaluating rule: {about}"


def _short(rule: Object) -> str:
    return str(rule.get("message") or rule["rule"]).strip()


def _message(rule: Rule, activation: expressions.Activation) -> str:
    if rule.told is not None:
        try:
            text = str(rule.told.value(activation)).strip()
        except EvaluationError:
            text = ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE_BYTES:
            return text
    return str(rule.found.get("message") or f"failed rule: {_short(rule.found)}").strip()


def _of_reason(path: str, kind: str, detail: str, reason: str | None) -> FieldError:
    match reason:
        case "FieldValueForbidden":
            return not_allowed(path, detail)
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return duplicate(path, kind)
    return bad_value(path, kind, detail)


def checked(rules: Node, obj: Object, old: Object | None, found: list[FieldError]) -> list[FieldError]:
    """What is wrong with an object by its schema (`found`) and by the rules, which only sound objects are held to."""
    if any(error.reason in _BLOCKING for error in found):
        return [*found, _UNCHECKED]
    return [*found, *rules.errors(obj, old)]
