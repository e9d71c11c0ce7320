"""Amounts by name: absent is 0, sums are exact, and what no machine has is bounded."""

from __future__ import annotations

import pytest

from embedded.fault import ConfigurationFault
from embedded.resources import CPU, MEMORY, ResourceVector, countable, parse_resources

LARGEST = 1 << 53


def vector(**amounts: int) -> ResourceVector:
    return ResourceVector(amounts)


def test_arithmetic() -> None:
    """Over the names of both."""
    one, other = vector(a=1, b=5), vector(b=2, c=4)
    assert (one + other).amounts == {"a": 1, "b": 7, "c": 4}
    assert (one - other).amounts == {"a": 1, "b": 3, "c": -4}
    assert one.maximum(other).amounts == {"a": 1, "b": 5, "c": 4}
    assert vector().maximum(vector(a=-1)).amounts == {"a": 0}


def test_what_is_there() -> None:
    """A name that is missing counts as 0; amounts of nothing are nothing."""
    found = vector(a=0, b=2)
    assert (found["a"], found["b"], found["c"]) == (0, 2, 0)
    assert "a" in found and "c" not in found and list(found) == ["a", "b"]
    assert found and not vector(a=0) and not vector()


def test_read() -> None:
    """CPU in thousandths, all else in whole units, rounded up."""
    found = parse_resources({CPU: "1500m", MEMORY: "1Gi", "x": "1.5"}, "here")
    assert found.amounts == {CPU: 1500, MEMORY: 1 << 30, "x": 2}


@pytest.mark.parametrize(("text", "words"), [("much", "is not a quantity"), ("-1", "'-1' is negative")])
def test_what_cannot_be_read(text: str, words: str) -> None:
    """The resource is named."""
    with pytest.raises(ConfigurationFault, match=rf"here\.memory.*{words}"):
        parse_resources({MEMORY: text}, "here")


def test_more_than_any_machine_has() -> None:
    """So that sums of many stay within 64 bits."""
    assert parse_resources({MEMORY: "8Ei", CPU: "1"}, "here").amounts == {MEMORY: LARGEST, CPU: 1000}
    small = vector(a=LARGEST)
    assert countable(small) is small
    assert countable(vector(a=LARGEST + 1, b=1)).amounts == {"a": LARGEST, "b": 1}
