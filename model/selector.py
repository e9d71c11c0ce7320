"""Label selectors of Kubernetes as hashable values, for node labels (Gt and Lt too) and pod labels alike.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ and
k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property

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


class Selector(msgspec.Struct, frozen=True, cache_hash=True, dict=True):
    """All requirements must hold (matchLabels are In with one value); none at all matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Costs by the shorter of labels and keys; how many requirements and values there are its author chooses."""
        rules = self._rules
        if not rules.needed <= labels.keys():
            return False
        by_key = rules.by_key
        return all(
            by_key[key].hold(labels[key])
            for key in (labels if len(labels) < len(by_key) else by_key)
            if key in labels and key in by_key
        )

    @cached_property
    def _rules(self) -> _Rules:
        by_key: dict[str, list[Requirement]] = {}
        for requirement in self.requirements:
            by_key.setdefault(requirement.key, []).append(requirement)
        absent = (Operator.NOT_IN, Operator.DOES_NOT_EXIST)
        needed = frozenset(each.key for each in self.requirements if each.operator not in absent)
        return _Rules(needed, {key: _rules_of(found) for key, found in by_key.items()})


class _KeyRules(msgspec.Struct, frozen=True):
    """What all requirements on one key say of a label that is there; `listed` None: any value."""

    listed: frozenset[str] | None
    barred: frozenset[str]
    absent: bool
    compared: tuple[Requirement, ...]

    def hold(self, label: str) -> bool:
        if self.absent or label in self.barred or (self.listed is not None and label not in self.listed):
            return False
        return all(each.holds({each.key: label}) for each in self.compared)


class _Rules(msgspec.Struct, frozen=True):
    """`needed` are keys that must be there."""

    needed: frozenset[str]
    by_key: Mapping[str, _KeyRules]


def _rules_of(requirements: Iterable[Requirement]) -> _KeyRules:
    listed: frozenset[str] | None = None
    barred, compared, absent = set[str](), list[Requirement](), False
    for each in requirements:
        match each.operator:
            case Operator.IN:
                listed = frozenset(each.values) if listed is None else listed.intersection(each.values)
            case Operator.NOT_IN:
                barred.update(each.values)
            case Operator.DOES_NOT_EXIST:
                absent = True
            case Operator.GT | Operator.LT:
                compared.append(each)
    return _KeyRules(listed, frozenset(barred), absent, tuple(compared))
