"""Label selectors of Kubernetes (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class Operator(StrEnum):
    """What a requirement says of its key."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Requirement(msgspec.Struct, frozen=True):
    """One of matchExpressions."""

    key: str
    operator: Operator
    values: list[str] | None = None

    def __post_init__(self) -> None:
        if bool(self.values) != (self.operator in (Operator.IN, Operator.NOT_IN)):
            raise ValueError("In and NotIn need values, Exists and DoesNotExist take none")

    def holds(self, labels: Mapping[str, str]) -> bool:
        """NotIn and DoesNotExist hold for labels without the key."""
        present = self.key in labels
        if self.operator is Operator.IN:
            return present and labels[self.key] in (self.values or ())
        if self.operator is Operator.NOT_IN:
            return not present or labels[self.key] not in (self.values or ())
        return present == (self.operator is Operator.EXISTS)


class LabelSelector(msgspec.Struct, frozen=True, rename="camel"):
    """An empty selector matches everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """All labels and all requirements hold."""
        wanted = (self.match_labels or {}).items()
        return all(labels.get(key) == value for key, value in wanted) and all(
            requirement.holds(labels) for requirement in self.match_expressions or ()
        )
