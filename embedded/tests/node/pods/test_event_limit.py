"""The kubelet's spam filter: 25 events at once, then one in five minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from embedded.node.pods.event_limit import EventLimit

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_a_burst_then_one_in_five_minutes() -> None:
    """What is refused costs nothing."""
    limit = EventLimit(NOW)
    assert [limit.take(NOW) for _ in range(26)] == [True] * 25 + [False]
    assert not limit.take(later(299))
    assert limit.take(later(301))
    assert not limit.take(later(302))


def test_it_fills_up_to_a_burst() -> None:
    """However long nobody asked."""
    limit = EventLimit(NOW)
    assert [limit.take(later(1e7)) for _ in range(26)] == [True] * 25 + [False]
