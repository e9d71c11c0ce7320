"""Decision: one number, the signed terms that make it, and why.

The value *is* the sum of its terms: a cap, a floor, a ratio or a hold appears as one more term that holds
the difference it made. Logs, metrics, Events, gRPC answers and `sublet explain` all print this record.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from model.reason import Reason


class Unit(StrEnum):
    """What one of a decision's value is."""

    MILLI_CPU = "milli"
    BYTES = "bytes"
    MICROSECONDS = "us"
    SHARES = "shares"
    WEIGHT = "weight"
    NODES = "nodes"
    PODS = "pods"
    CPUS = "cpus"
    PIDS = "pids"
    PERCENT = "percent"
    NUMBER = "number"


class Term(msgspec.Struct, frozen=True):
    """One signed part of a value, in the decision's unit; `note` says where it comes from."""

    name: str
    value: int
    note: str = ""


class Decision(msgspec.Struct, frozen=True):
    """`subject` (node/x, cgroup/…, pod/ns/x, gang/ns/x) gets `value` of `name`, for `reason`.

    `at_seconds` is the time of the facts (Unix time). Raises ValueError where the terms do not sum to the value:
    that is always a bug of ours, and a wrong explanation is worse than none.
    """

    subject: str
    name: str
    value: int
    unit: Unit
    reason: Reason
    terms: tuple[Term, ...]
    policy: str = ""
    at_seconds: float = 0.0
    detail: str = ""

    def __post_init__(self) -> None:
        total = sum(term.value for term in self.terms)
        if total != self.value:
            raise ValueError(f"{self.subject} {self.name}: terms sum to {total}, value is {self.value}")


class TermSum:
    """Builds a value and its terms side by side, so that neither can drift from the other."""

    def __init__(self) -> None:
        self.value = 0
        self._terms: list[Term] = []

    def add(self, name: str, amount: int, note: str = "") -> TermSum:
        """Add a signed amount; a zero is kept, since knowing that a term is zero explains too."""
        self._terms.append(Term(name, amount, note))
        self.value += amount
        return self

    def at_least(self, name: str, floor: int, note: str = "") -> TermSum:
        """Raise the value to `floor`; adds a term only where that makes a difference."""
        return self.add(name, floor - self.value, note) if self.value < floor else self

    def at_most(self, name: str, cap: int, note: str = "") -> TermSum:
        """Lower the value to `cap`; adds a term only where that makes a difference."""
        return self.add(name, cap - self.value, note) if self.value > cap else self

    def become(self, name: str, value: int, note: str = "") -> TermSum:
        """Set the value, as holding or rounding does; adds a term only where that makes a difference."""
        return self.add(name, value - self.value, note) if self.value != value else self

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(self._terms)
