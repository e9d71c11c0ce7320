"""Whether the rules of a definition may cost more than a budget, which Kubernetes refuses.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#resource-use-by-validation-functions
Source: kubernetes `apiextensions-apiserver/pkg/apis/apiextensions/validation` (validation.go, cel_validation.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from embedded.apiserver.apimachinery.field_errors import FieldError, not_allowed
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.cel.ast import read_checked
from embedded.apiserver.cel.cost import MOST, estimated_cost
from embedded.apiserver.cel.sizes import LARGEST_REQUEST_BYTES, SizeBounds

_BUDGET = 10_000_000  # of one expression
_WHOLE_BUDGET = 100_000_000  # of all rules of a schema
_MOST_TOLD = 4
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
_CONTRIBUTED = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"


@dataclass(frozen=True, slots=True)
class RuleExpression:
    """A compiled expression of a rule. `bound` says that it stands inside a `cel.bind` that is not its own."""

    path: str
    expression: Any  # of the engine
    bound: bool
    extent: SizeBounds
    times: int | None  # how many values it is held against; None where the schema gives no bound

    @property
    def is_message(self) -> bool:
        return self.path.endswith(".messageExpression")

    def cost(self) -> int:
        """One message is made of the first fault at most."""
        checked = read_checked(self.expression.serialize())
        root = checked.root
        if self.bound and root.loop is not None:
            root = root.loop.result
        once = estimated_cost(checked, root, self.extent)
        if self.is_message:
            return once
        times = LARGEST_REQUEST_BYTES // (self.extent.least_bytes + 1) if self.times is None else self.times
        return min(once * times, MOST)


def times_below(schema: Object, times: int | None) -> int | None:
    """How many values the parts of a schema have, where it has so many."""
    most: int | None = 1
    if schema.get("type") == "array":
        most = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        most = schema.get("maxProperties")
    return None if times is None or most is None else min(times * max(most, 0), MOST)


def cost_errors(found: Sequence[RuleExpression]) -> Iterator[FieldError]:
    """Of the rules of one schema, by paths within it."""
    costs = [(each, each.cost()) for each in found]
    for each, cost in costs:
        if cost > _BUDGET:
            what = "estimated messageExpression cost" if each.is_message else "estimated rule cost"
            yield not_allowed(each.path, _exceeded(what, cost, _BUDGET))
    total = min(sum(cost for _, cost in costs), MOST)
    if total <= _WHOLE_BUDGET:
        return
    costly = [(each, cost) for each, cost in costs if cost >= _WHOLE_BUDGET // 100]
    for each, _ in sorted(costly, key=lambda pair: -pair[1])[:_MOST_TOLD]:
        yield not_allowed(each.path, _CONTRIBUTED)
    what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    yield not_allowed("", _exceeded(what, total, _WHOLE_BUDGET))


def _exceeded(what: str, cost: int, budget: int) -> str:
    factor = cost / budget
    told = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {told} {_ADVICE}"
