"""Times of objects as seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kube.objects import unix_seconds

LAST = 253_402_300_799.0


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (None, 0.0),
        (datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), 5.0),
        (datetime(1970, 1, 1, 1, 0, 5, tzinfo=timezone(timedelta(hours=1))), 5.0),
        (datetime(1, 1, 1, tzinfo=UTC), 0.0),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), 0.0),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), LAST),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-12))), LAST),
    ],
)
def test_unix_seconds(time: datetime | None, seconds: float) -> None:
    """What can be written as a time again, whatever a time zone makes of it."""
    assert unix_seconds(time) == seconds
    datetime.fromtimestamp(unix_seconds(time), UTC)
