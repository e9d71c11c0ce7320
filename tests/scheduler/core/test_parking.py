"""Back-off."""

from __future__ import annotations

from scheduler.core.parking import BackoffPolicy, due_seconds, park, wake

POLICY = BackoffPolicy()


def test_back_off_doubles_to_its_longest() -> None:
    """1 s, doubling, at most 10 s."""
    parked, delays = None, []
    for _ in range(6):
        parked = park(parked, POLICY, 100.0)
        delays.append(parked.not_before_seconds - 100.0)
    assert delays == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_waking_keeps_the_back_off() -> None:
    """Without news a workload waits five minutes; with news only until its back-off is over."""
    parked = park(None, POLICY, 100.0)
    assert due_seconds(parked, POLICY) == 400.0
    assert due_seconds(wake(parked), POLICY) == 101.0
    assert due_seconds(park(None, POLICY, 100.0, woken=True), POLICY) == 101.0


def test_waking_does_not_start_the_back_off_anew() -> None:
    """Whenever the news comes, the back-off counts from the last attempt; after it a woken workload is due at once."""
    parked = None
    for _ in range(5):
        parked = park(parked, POLICY, 100.0)
    assert parked is not None
    assert due_seconds(wake(wake(parked)), POLICY) == 110.0
