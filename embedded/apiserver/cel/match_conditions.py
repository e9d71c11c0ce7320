"""`matchConditions` of webhooks and admission policies: expressions that must all hold before one is asked.

Source: kubernetes `apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, duplicate, required, too_many
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.cel.expressions import CompileError, EvaluationError, Program
from embedded.apiserver.cel.variables import Compiler

if TYPE_CHECKING:
    from embedded.apiserver.apimachinery.resource_types import ResourceType
    from embedded.apiserver.cel.admission_variables import AdmissionVariables

_MOST = 64


def condition_errors(path: str, conditions: Sequence[Object], params: bool = False) -> Iterator[FieldError]:
    """Everything wrong with conditions; `params` says whether they may use the name."""
    if len(conditions) > _MOST:
        yield too_many(path, len(conditions), _MOST)
    compiler, seen = Compiler(params), set()
    for index, condition in enumerate(conditions):
        here, name = f"{path}[{index}]", condition.get("name") or ""
        yield from _expression_errors(f"{here}.expression", condition.get("expression") or "", compiler)
        if not name:
            yield required(f"{here}.name")
            continue
        yield from names.qualified_name(f"{here}.name", name)
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)


def _expression_errors(path: str, text: str, compiler: Compiler) -> Iterator[FieldError]:
    if not text.strip():
        yield required(path)
        return
    try:
        compiler.compile(text.strip(), ("bool",))
    except CompileError as error:
        yield bad_value(path, text.strip(), str(error))


def programs(conditions: Sequence[Object], params: bool = False) -> tuple[Program, ...]:
    """Of conditions that nothing is wrong with."""
    compiler = Compiler(params)
    return tuple(compiler.compile(condition["expression"].strip(), ("bool",)) for condition in conditions)


def hold(
    conditions: Sequence[Program], facts: AdmissionVariables, shown_as: ResourceType, params: Object | None = None
) -> bool:
    """Whether all hold. One that does not decides; else raises EvaluationError for those that have no value."""
    errors = []
    for condition in conditions:
        try:
            if facts.value(condition, shown_as, params) is False:
                return False
        except EvaluationError as error:
            errors.append(str(error))
    if errors:
        raise EvaluationError(errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]")
    return True
