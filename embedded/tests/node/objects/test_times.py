"""metav1.Time, written and read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from embedded.node.objects.times import moment, stamp

NOON = datetime(2026, 1, 2, 12, 0, 5, 999_999, tzinfo=UTC)


def test_written_is_read_again() -> None:
    """In whole seconds, cut off."""
    assert stamp(NOON) == "2026-01-02T12:00:05Z"
    assert moment(stamp(NOON)) == NOON.replace(microsecond=0)


@pytest.mark.parametrize("text", [None, "", "soon", "2026-13-01T00:00:00Z"])
def test_what_is_no_time(text: str | None) -> None:
    """None."""
    assert moment(text) is None
