"""The expressions of one admission policy, which may use those of its variables: `variables.name`.

Variables are computed where they are used, so one that has no value matters only to an expression that asks for it.
Source: kubernetes `apiserver/pkg/admission/plugin/cel/compile.go`, `composition.go`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from embedded.apiserver.cel import expressions
from embedded.apiserver.cel.expressions import Activation, CompileError, Environment, EvaluationError, Program, Type

_AUTHORIZER = {
    "authorizer": expressions.type_of("Authorizer"),
    "authorizer.requestResource": expressions.type_of("ResourceCheck"),
}
_LOOSE = dict.fromkeys(("object", "oldObject", "request", "namespaceObject", "params"), expressions.DYN)
EVALUATED = Environment({**_LOOSE, **_AUTHORIZER}, binds=True)
"""In which every expression of admission is computed."""
# Texts and comments are passed over, for what looks like a variable in them is none.
_USE = re.compile(
    r"""//[^\n]*|[bB]?[rR][bB]?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')"""
    r"""|\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
    r"""|(?<![\w.])variables\s*\.\s*(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL,
)


@lru_cache
def _checked(params: bool, authorizer: bool) -> dict[str, Type]:
    names = {
        "object": expressions.DYN,
        "oldObject": expressions.DYN,
        "request": expressions.type_of("AdmissionRequest"),
        "namespaceObject": expressions.type_of("Namespace"),
    }
    return {**names, **({"params": expressions.DYN} if params else {}), **(_AUTHORIZER if authorizer else {})}


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    type: Type
    text: str  # the variables it uses under the names they are bound to
    uses: tuple[str, ...]
    program: Program | None


@dataclass(frozen=True, slots=True)
class Composed(Program):
    """A program and the variables that it names itself."""

    variables: tuple[_Variable, ...] = ()

    def value(self, activation: Activation) -> Any:
        try:
            return Program.value(self, activation)
        except EvaluationError as error:
            raise EvaluationError(self._told(activation, str(error))) from None

    def _told(self, activation: Activation, text: str) -> str:
        """Whose error it is: the engine does not tell."""
        for variable in self.variables:
            try:
                if variable.program is not None:
                    variable.program.value(activation)
            except EvaluationError as error:
                if str(error).endswith(text):
                    return f'composited variable "{variable.name}" fails to evaluate: {error}'
        return text


class Compiler:
    """Compiles expressions that see the variables which were added before them."""

    def __init__(self, params: bool) -> None:
        self._params = params
        self._variables: dict[str, _Variable] = {}
        self._environments: dict[tuple[int, bool], Environment] = {}

    def add(self, name: str, text: str) -> None:
        """One more variable; raises CompileError, and then knows it as one of any type."""
        bound, uses = _bound(text)
        self._variables[name] = _Variable(name, expressions.DYN, "null", (), None)
        known = {key: variable for key, variable in self._variables.items() if key != name}
        program = self._program(text, known, authorizer=True)
        self._variables[name] = _Variable(name, program.type, bound, uses, program)

    def compile(self, text: str, wanted: Sequence[str], authorizer: bool = True) -> Program:
        """A program whose value is of one of the wanted types; raises CompileError."""
        program = self._program(text, self._variables, authorizer)
        if (found := expressions.shown(program.type)) not in wanted:
            names = wanted[0] if len(wanted) == 1 else f"one of [{' '.join(wanted)}]"
            raise CompileError(f"must evaluate to {names} but got {found}")
        return program

    def _program(self, text: str, known: dict[str, _Variable], authorizer: bool) -> Composed:
        try:
            kind = self._environment(known, authorizer).compile(text).type
        except CompileError as error:
            raise CompileError(f"compilation failed: {error}") from None
        bound, uses = _bound(text)
        needed = _needed(uses, known)
        for variable in reversed(needed):
            bound = f"cel.bind({_name(variable.name)}, {variable.text}\n, {bound}\n)"
        named = tuple(variable for variable in needed if variable.name in uses)
        return Composed(text, EVALUATED.compile(bound).expression, kind, named)

    def _environment(self, known: dict[str, _Variable], authorizer: bool) -> Environment:
        key = (len(known), authorizer)
        if key not in self._environments:
            named = {f"variables.{variable.name}": variable.type for variable in known.values()}
            self._environments[key] = Environment({**_checked(self._params, authorizer), **named})
        return self._environments[key]


def _needed(uses: Sequence[str], known: dict[str, _Variable]) -> list[_Variable]:
    """The variables that these use, and those that they use, in the order they were added."""
    wanted = set(uses)
    for variable in reversed(known.values()):
        if variable.name in wanted:
            wanted |= set(variable.uses)
    return [variable for variable in known.values() if variable.name in wanted]


def _bound(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with names of their own for the variables it uses, and which these are."""
    uses: dict[str, None] = {}

    def renamed(found: re.Match[str]) -> str:
        if found["name"] is None:
            return found[0]
        uses[found["name"]] = None
        return _name(found["name"])

    return _USE.sub(renamed, text), tuple(uses)


def _name(variable: str) -> str:
    return f"__variables_{variable}"
