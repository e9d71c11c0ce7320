"""Go's duration texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.dialects.documents.duration import go_duration, go_duration_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3600s", 3600), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25), ("5m0s", 300), ("0s", 0)]
    + [(text, None) for text in ("", "5", "s", "5 m", "-5m", "5m3", "5M")],
)
def test_reading(text: str, seconds: float | None) -> None:
    """A number alone is no duration."""
    assert go_duration_seconds(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (45, "45s"), (300, "5m0s"), (3600, "1h0m0s"), (5400, "1h30m0s"), (5461.9, "1h31m1s")],
)
def test_writing(seconds: float, text: str) -> None:
    """As Go prints them: every unit below the largest, zero or not."""
    assert go_duration(seconds) == text


@given(st.integers(0, 10**7))
def test_what_is_written_is_read(seconds: int) -> None:
    """Whole seconds survive."""
    assert go_duration_seconds(go_duration(seconds)) == seconds
