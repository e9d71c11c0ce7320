"""Quantities behave as apimachinery's resource.Quantity does."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import quantity

LARGEST = (1 << 63) - 1
CANONICAL = {
    "thousands get a suffix": ("8000", "8k"),
    "a fraction becomes milli": ("0.5", "500m"),
    "binary suffix grows": ("1024Mi", "1Gi"),
    "a fraction of a binary unit": ("1.5Gi", "1536Mi"),
    "binary that is no whole number rounds up": ("0.1Mi", "104858"),
    "below a thousand stays": ("2", "2"),
    "an integer is taken too": (2, "2"),
    "a float is taken too": (0.25, "250m"),
    "exponent stays an exponent": ("1e3", "1e3"),
    "odd exponent moves to a multiple of three": ("1e4", "10e3"),
    "smaller than a nano rounds up": ("0.0000000001", "1n"),
    "zero has no suffix": ("0Gi", "0"),
    "negative": ("-1500", "-1500"),
    "no suffix fits": ("1000001", "1000001"),
    "trailing point": ("5.", "5"),
    "too large is capped": ("1e30", "9223372036854775807"),
}


@pytest.mark.parametrize(("text", "expected"), CANONICAL.values(), ids=CANONICAL.keys())
def test_canonical_form(text: str | int | float, expected: str) -> None:
    """The stored form is the one kubectl shows."""
    assert quantity.canonical(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "abc", "1 Gi", "1gb", "--1", "1e", "0x10", "1_000", "٣", True, None, [], "nan", "1e9223372036854775808"],
)
def test_anything_else_is_refused(text: object) -> None:
    """What is not a quantity never becomes a number, and the error says what to write."""
    with pytest.raises(quantity.QuantityError, match="is not a quantity; write a number"):
        quantity.canonical(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "millis", "units"),
    [
        ("100m", 100, 1),
        ("1", 1000, 1),
        ("0.0001", 1, 1),
        ("1500m", 1500, 2),
        ("-100m", -100, -1),
        ("4Gi", 4 << 30, 4 << 30),
    ],
)
def test_rounding_is_away_from_zero(text: str, millis: int, units: int) -> None:
    """MilliValue and Value never round towards zero."""
    expected_millis = millis * 1000 if text == "4Gi" else millis
    assert (quantity.parse_millis(text), quantity.parse_units(text)) == (expected_millis, units)


@pytest.mark.parametrize(
    ("text", "millis", "units"),
    [
        ("1e0000", 1000, 1),
        ("1e-0000", 1000, 1),
        ("1e" + "0" * 5000 + "1", 10_000, 10),
        ("0" * 5000 + "5", 5000, 5),
        ("0." + "3" * 5000, 334, 1),
        ("1" + "0" * 5000 + "e-5000", 1000, 1),
        ("1e9999", LARGEST, LARGEST),
        ("10e99999", LARGEST, LARGEST),
        ("-1e99999", -LARGEST, -LARGEST),
        ("9" * 5000, LARGEST, LARGEST),
        ("9" * 5000 + "Ei", LARGEST, LARGEST),
        ("1e-99999", 1, 1),
        ("0e99999", 0, 0),
        ("1e4294967293", 1, 1),
        ("1e-4294967295", 10_000, 10),
        ("1e9223372036854775807", 100, 1),
    ],
)
def test_what_api_servers_store_is_read(text: str, millis: int, units: int) -> None:
    """A pod that nobody can read has no limits, and stops lending on its node. Forms and values are Kubernetes 1.34's."""
    assert (quantity.parse_millis(text), quantity.parse_units(text)) == (millis, units)


@given(st.integers(-(10**15), 10**15))
def test_formatting_round_trips(amount: int) -> None:
    """What we print is what we would read."""
    assert quantity.parse_millis(quantity.format_millis(amount)) == amount
    assert quantity.parse_units(quantity.format_bytes(amount)) == amount


@given(
    st.fractions(0, 10**9).map(lambda f: Fraction(int(f * 10**9), 10**9)), st.sampled_from(["", "m", "k", "Ki", "Mi"])
)
def test_canonical_keeps_the_value(number: Fraction, suffix: str) -> None:
    """Canonicalising again keeps the value, and the value moves by less than the smallest unit.

    The text may change once more: 38.085106Ki is rounded up to 39000, which is decimal by itself, hence 39k.
    """
    text = f"{float(number):.6f}{suffix}"
    once = quantity.canonical(text)
    twice = quantity.canonical(once)
    assert quantity.canonical(twice) == twice and quantity.parse(twice) == quantity.parse(once)
    assert quantity.parse(text) <= quantity.parse(once) < quantity.parse(text) + 1
