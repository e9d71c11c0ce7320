"""Amounts of queues as they are written."""

from __future__ import annotations

from typing import Any

import pytest

from kube.dialects.queues.quota import Written, cells_of, require_order, whole, written
from model.fault import ConfigurationFault
from model.queue import QuotaCell


def test_amounts() -> None:
    """In base units; nothing written is nothing said."""
    assert written({"cpu": "1500m", "memory": "1Gi", "a/b": 2}, "spec.max", "Q") == Written(
        "spec.max", {"cpu": 1500, "memory": 1 << 30, "a/b": 2}
    )
    assert written(None, "spec.max", "Q") == Written("spec.max")


@pytest.mark.parametrize(
    ("name", "amount"), [("gpu", "500m"), ("nvidia.com/gpu", 0.5), ("kubernetes.io/batch-cpu", "1.5"), ("pods", "0.1")]
)
def test_what_is_counted_in_whole_ones(name: str, amount: Any) -> None:
    """A part of one would be rounded up to all of it."""
    with pytest.raises(ConfigurationFault) as found:
        written({name: amount}, "spec.max", "Q")
    told = f"Q: spec.max.{name}: is {amount}, and it is counted in whole ones (write a whole number)"
    assert str(found.value) == told


def test_cells() -> None:
    """By name, of flavour none; a resource without a cell is left out."""
    cell = QuotaCell(1)
    assert list(cells_of(["b", "a", "c"], {"b": cell, "a": cell})) == [("", "a"), ("", "b")]


ORDERS: dict[str, tuple[list[Written], str]] = {
    "ascending": ([Written("a", {"cpu": 1}), Written("b", {"cpu": 1}), Written("c", {"cpu": 2})], ""),
    "other resources": ([Written("a", {"cpu": 5}), Written("b", {"memory": 1})], ""),
    "the next is less": (
        [Written("a", {"cpu": 2000}), Written("b", {"cpu": 1000})],
        "Q: a.cpu: is 2, more than b 1 (lower it, or raise b.cpu)",
    ),
    "the last is less, and the middle silent": (
        [Written("a", {"memory": 2 << 30}), Written("b"), Written("c", {"memory": 1 << 30})],
        "Q: a.memory: is 2Gi, more than c 1Gi (lower it, or raise c.memory)",
    ),
}


@pytest.mark.parametrize("case", ORDERS)
def test_which_may_not_exceed_which(case: str) -> None:
    fields, told = ORDERS[case]
    if not told:
        return require_order("Q", *fields)
    with pytest.raises(ConfigurationFault) as found:
        require_order("Q", *fields)
    assert str(found.value) == told
    return None


NUMBERS: dict[str, tuple[Any, int | None]] = {
    "nothing": (None, 7), "one": (1, 1), "the most": ((1 << 31) - 1, (1 << 31) - 1), "too many": (1 << 31, None),
    "none": (0, None), "a text": ("1", None), "a truth": (True, None), "a part": (1.5, None),
}  # fmt: skip


@pytest.mark.parametrize("case", NUMBERS)
def test_whole_numbers(case: str) -> None:
    raw, wanted = NUMBERS[case]
    if wanted is not None:
        assert whole(raw, 7, 1, "spec.weight", "Q") == wanted
        return
    with pytest.raises(ConfigurationFault, match=r"Q: spec\.weight: is .* \(write a whole number of 1 or more\)"):
        whole(raw, 7, 1, "spec.weight", "Q")
