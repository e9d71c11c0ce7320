"""What pods say about being evicted."""

from __future__ import annotations

import pytest

from kube.dialects.sublet.eviction import eviction_terms
from model.pod.colocation import EvictionTerms

SILENT = EvictionTerms()


def test_a_pod_that_says_nothing() -> None:
    """Every rule of best effort may evict it, none by priority."""
    assert eviction_terms({}, {}) == SILENT == EvictionTerms(False, None, 0, None, 0.0)


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("True", False), ("1", False), ("", False)])
def test_enabled(text: str, expected: bool) -> None:
    """Only the very word, as in Koordinator."""
    assert eviction_terms({"koordinator.sh/eviction-enabled": text}, {}).enabled is expected


POLICIES: dict[str, tuple[str, set[str]]] = {
    "a list": ('["BEMemoryEvict", "CPUEvict"]', {"BEMemoryEvict", "CPUEvict"}),
    "an empty list": ("[]", set()),
    "null": ("null", set()),
    "empty": ("", set()),
    "a word": ("BEMemoryEvict", set()),
    "no list": ('{"BEMemoryEvict": true}', set()),
    "no names": ("[1]", set()),
}


@pytest.mark.parametrize(("text", "expected"), POLICIES.values(), ids=POLICIES.keys())
def test_policy(text: str, expected: set[str]) -> None:
    """What cannot be read protects the pod from every rule."""
    assert eviction_terms({}, {"koordinator.sh/eviction-policy": text}).features == frozenset(expected)


PRIORITIES: dict[str, tuple[str, int | None]] = {
    "a number": ("12", 12),
    "negative": ("-3", -3),
    "the smallest": ("-2147483648", -(1 << 31)),
    "too large": ("2147483648", None),
    "endless": ("9" * 400, None),
    "a part": ("1.5", None),
    "a word": ("high", None),
    "other digits": ("\u0663", None),
    "empty": ("", None),
}


@pytest.mark.parametrize(("text", "expected"), PRIORITIES.values(), ids=PRIORITIES.keys())
def test_priorities(text: str, expected: int | None) -> None:
    """No number is unset: 0 of the eviction's priority, none of the label's."""
    found = eviction_terms({"koordinator.sh/priority": text}, {"koordinator.sh/eviction-priority": text})
    assert (found.priority, found.sub_priority) == (expected or 0, expected)
