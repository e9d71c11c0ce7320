"""Time stamps of objects."""

import pytest

from embedded.apiserver.apimachinery.objects import parse_time, rfc3339

TIMES = {
    "UTC": ("2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"),
    "an offset": ("2026-01-01T12:00:00+02:00", "2026-01-01T10:00:00Z"),
    "nanoseconds": ("2026-01-01T12:00:00.123456789Z", "2026-01-01T12:00:00Z"),
    "the first year": ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    "the last second": ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
}


@pytest.mark.parametrize(("text", "written"), TIMES.values(), ids=TIMES)
def test_times_are_written_in_utc(text, written):
    """Four digits of the year, whole seconds."""
    assert rfc3339(parse_time(text)) == written


@pytest.mark.parametrize("text", [None, "", "noon", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_what_is_no_time_in_utc_is_none(text):
    """Before the year 1 and after 9999 there is no such text."""
    assert parse_time(text) is None
