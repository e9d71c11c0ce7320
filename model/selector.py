"""Label selectors of Kubernetes as hashable values, for node labels (Gt and Lt too) and pod labels alike.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ and
k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
"""

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
    GT = "Gt"
    LT = "Lt"


class Requirement(msgspec.Struct, frozen=True, cache_hash=True):
    """One expression; Gt and Lt take one whole number and compare with the label read as one."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """NotIn and DoesNotExist hold for labels without the key; Gt and Lt do not, nor where one is no number."""
        present = self.key in labels
        match self.operator:
            case Operator.IN:
                return present and labels[self.key] in self.values
            case Operator.NOT_IN:
                return not present or labels[self.key] not in self.values
            case Operator.EXISTS:
                return present
            case Operator.DOES_NOT_EXIST:
                return not present
            case _:
                return present and self._compared(labels[self.key])

    def _compared(self, label: str) -> bool:
        try:
            left, right = int(label), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return left > right if self.operator is Operator.GT else left < right


class Selector(msgspec.Struct, frozen=True, cache_hash=True):
    """All requirements must hold (matchLabels are In with one value); none at all matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.holds(labels) for requirement in self.requirements)
