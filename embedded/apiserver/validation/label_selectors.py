"""Field errors of label selectors. Words: apimachinery's `meta/v1/validation`."""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed, required
from embedded.apiserver.apimachinery.objects import Object

_NO_OPERATOR = "not a valid selector operator"


def label_selector_errors(path: str, selector: Object | None) -> Iterator[FieldError]:
    """Of a metav1.LabelSelector."""
    if selector is None:
        return
    yield from names.labels(f"{path}.matchLabels", selector.get("matchLabels"))
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        yield from expression_errors(here, expression, "must be specified when `operator` is 'In' or 'NotIn'")
        yield from names.qualified_name(f"{here}.key", expression["key"])
        for number, value in enumerate(expression.get("values") or ()):
            yield from names.label_value(f"{here}.values[{number}]", value)


def expression_errors(
    path: str, expression: Object, need: str, comparing: tuple[str, ...] = ()
) -> Iterator[FieldError]:
    """Whether operator and values go together; operators that are `comparing` take exactly one value."""
    operator, values = expression["operator"], expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", need)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield not_allowed(f"{path}.values", why)
    elif operator not in comparing:
        yield bad_value(f"{path}.operator", operator, _NO_OPERATOR)
    elif len(values) != 1:
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
