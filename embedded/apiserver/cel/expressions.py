"""Expressions in the Common Expression Language, with the words in which Kubernetes tells of what is wrong with them.

The engine is cel-expr-python, the C++ implementation by the authors of the language; Kubernetes uses their Go one.
Types are checked in one environment, which knows what each field is, and values are computed in another, where every
name is whatever it is: there a field that an object lacks is an error, as in Kubernetes, and not an empty value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cel_expr_python import cel as engine  # type: ignore[import-untyped]
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings  # type: ignore[import-untyped]

from embedded.apiserver.cel import addresses, authorizer, quantities
from embedded.apiserver.cel import functions as cel_functions
from embedded.apiserver.cel.functions import Function
from embedded.apiserver.cel.messages import PACKAGE, POOL

Type = Any  # engine.Type: the engine comes without types for the type checker
Activation = Any  # engine.Activation: the values of the names, as the engine has them
DYN, BOOL, STRING = engine.Type.DYN, engine.Type.BOOL, engine.Type.STRING
# As Kubernetes has them (`apiserver/pkg/cel/environment/base.go`): neither `math` nor `base64`.
_EXTENSIONS = (ext_optional.ExtOptional(), ext_strings.ExtStrings(2))
_CODE = re.compile(r"^[A-Z_]+: ")
_CODE_AGAIN = re.compile(r" \[[A-Z_]+\]$")
_FIELD_OF = re.compile(r"undefined field ('[^']*') not found in struct '[^']*'")
_VARIABLE = re.compile(r"undeclared reference to 'variables\.(\w+)' \(in container ''\)")
_UNDECLARED = re.compile(r"undeclared reference to '(\w+)\.[\w.]+'")
# What the engine says of a value, and what cel-go does.
_WORDS = (
    (re.compile(r'Key not found in map : "?(.*?)"?'), r"no such key: \1"),
    (re.compile(r"Index error: index=(-?\d+) size=\d+"), r"index out of bounds: \1"),
    (re.compile(r"No matching overloads found : .*|Applying SELECT to non-message type"), "no such overload"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"modulus by zero"), "modulus by zero"),
    (re.compile(r"integer overflow|int64 overflow"), "integer overflow"),
    (re.compile(r"Iteration budget exceeded.*"), "operation cancelled: actual cost limit exceeded"),
)


_TYPES: dict[str, Type] = {
    "dyn": DYN,
    "bool": BOOL,
    "string": STRING,
    "int": engine.Type.INT,
    "double": engine.Type.DOUBLE,
    "bytes": engine.Type.BYTES,
    "timestamp": engine.Type.TIMESTAMP,
    "duration": engine.Type.DURATION,
}


def type_of(name: str, package: str = PACKAGE) -> Type:
    """The type of a name as in `messages`."""
    if name.startswith("[]"):
        return engine.Type.List(type_of(name[2:], package))
    if name.startswith("{}"):
        return engine.Type.Map(STRING, type_of(name[2:], package))
    return _TYPES.get(name) or engine.Type(f"{package}.{name}")


def _declared(functions: Iterable[Function]) -> list[Any]:
    """The engine's declarations: one for each name, with every form it has."""
    forms: dict[str, list[Function]] = {}
    for function in functions:
        forms.setdefault(function.name, []).append(function)
    return [engine.FunctionDecl(name, list(_overloads(found))) for name, found in forms.items()]


def _overloads(forms: list[Function]) -> Iterator[Any]:
    """When it computes, the engine takes all messages for one type: of such forms one is known to it, and chooses."""
    alike: dict[tuple[object, ...], list[Function]] = {}
    for form in forms:
        key = (form.member, *(name if name in _TYPES or name[0] == "[" else "message" for name in form.parameters))
        alike.setdefault(key, []).append(form)
    for group in alike.values():
        for index, form in enumerate(group):
            yield engine.Overload(
                id="_".join((form.name.replace(".", "_"), *form.parameters)),
                return_type=type_of(form.result),
                parameters=[type_of(name) for name in form.parameters],
                is_member=form.member,
                **({} if index else {"impl": form.does if len(group) == 1 else _chosen(group)}),
            )


def _chosen(group: list[Function]) -> Callable[..., Any]:
    by_kind = {form.parameters[0]: form.does for form in group}
    return lambda first, *rest: by_kind[first.DESCRIPTOR.name](first, *rest)


_DECLARATIONS = _declared(
    (
        *cel_functions.FUNCTIONS,
        *quantities.FUNCTIONS,
        *addresses.FUNCTIONS,
        *authorizer.FUNCTIONS,
    )
)


class CompileError(ValueError):
    """The text is no expression, or not one of the type that is wanted."""


class EvaluationError(ValueError):
    """The expression has no value for these values of its names."""


@dataclass(frozen=True, slots=True)
class Program:
    """A checked expression, ready to be computed."""

    text: str
    expression: Any
    type: Type

    def value(self, activation: Activation) -> Any:
        """The value as plain Python; raises EvaluationError."""
        try:
            found = self.expression.eval(activation)
        except RuntimeError as error:
            raise EvaluationError(_told(str(error))) from None
        if found.type() == engine.Type.ERROR:
            raise EvaluationError(_told(str(found.value())))
        try:
            return found.plain_value()
        except TypeError:
            raise EvaluationError(f"a value of type {shown(found.type())} cannot be a result") from None


class Environment:
    """Which names an expression may use, each with its type; `binds` admits `cel.bind`, which Kubernetes does not."""

    def __init__(self, names: Mapping[str, Type], pool: Any = POOL, *, binds: bool = False) -> None:
        extensions = [*_EXTENSIONS, *((ext_bindings.ExtBindings(),) if binds else ())]
        self._engine = engine.NewEnv(pool, variables=dict(names), extensions=extensions, functions=_DECLARATIONS)

    def compile(self, text: str) -> Program:
        """Raises CompileError, in the words of cel-go."""
        try:
            expression = self._engine.compile(text)
        except (RuntimeError, UnicodeError) as error:
            raise CompileError(_without_codes(str(error))) from None
        return Program(text, expression, expression.return_type())

    def activation(self, values: Mapping[str, Any]) -> Activation:
        """The values of the names; each is converted when the first expression asks for it, and then once."""
        return self._engine.Activation(dict(values))


def shown(kind: Type) -> str:
    """A type as cel-go writes it: `bool`, `list(string)`."""
    text = re.sub(r"[A-Z_]+", lambda found: found[0].lower(), str(kind.name()).split("(")[0])
    return text.replace("<", "(").replace(">", ")")


def _without_codes(text: str) -> str:
    text = _CODE_AGAIN.sub("", _CODE.sub("", text))
    text = _FIELD_OF.sub(r"undefined field \1", text)
    text = _VARIABLE.sub(r"undefined field '\1'", text)
    return _UNDECLARED.sub(r"undeclared reference to '\1'", text)


def _told(text: str) -> str:
    text = _without_codes(text)
    for pattern, words in _WORDS:
        if found := pattern.fullmatch(text):
            return found.expand(words)
    return text
