"""ResourceVector arithmetic is exact and a missing name is 0."""

from __future__ import annotations

import pytest

from model.fault import ConfigurationFault
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, ResourceVector, divisible, parse_resources


def test_base_units() -> None:
    """cpu counts in thousandths, batch-cpu as the plain integer it is, memory in bytes."""
    vector = parse_resources({"cpu": "1.5", BATCH_CPU: "2k", "memory": "1Gi", "pods": 110}, "Node n")
    assert dict(vector.amounts) == {CPU: 1500, BATCH_CPU: 2000, MEMORY: 1 << 30, "pods": 110}


def test_what_there_is_a_part_of() -> None:
    """Of a CPU and of bytes; batch-cpu counts thousandths."""
    names = (CPU, MEMORY, BATCH_MEMORY, "ephemeral-storage", "hugepages-2Mi", BATCH_CPU, "pods", "nvidia.com/gpu")
    assert [name for name in names if divisible(name)] == list(names[:5])


def test_arithmetic_over_different_names() -> None:
    """Names of both sides survive, also where the difference is negative."""
    one, two = ResourceVector({CPU: 5, "a": 1}), ResourceVector({CPU: 7, "b": 2})
    assert dict((one + two).amounts) == {CPU: 12, "a": 1, "b": 2}
    assert dict((one - two).amounts) == {CPU: -2, "a": 1, "b": -2}
    assert dict(one.maximum(two).amounts) == {CPU: 7, "a": 1, "b": 2}
    assert one["missing"] == 0 and not ResourceVector({CPU: 0})


@pytest.mark.parametrize(("text", "told"), [("4Gib", "is not a quantity"), ("-1", "is negative"), (None, "is not")])
def test_a_bad_amount_names_object_and_resource(text: str, told: str) -> None:
    """The error says where, which resource and what to write."""
    with pytest.raises(ConfigurationFault, match=rf"Pod a/b: requests\.memory: .*{told}"):
        parse_resources({"memory": text}, "Pod a/b: requests")
