"""Back-off."""

from __future__ import annotations

from scheduler.core.queueing.backoff import BackoffPolicy, due_seconds, park, served_by, wake
from scheduler.core.queueing.news import Growth, Need, News, NewsKind, freed

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


def test_waking_does_not_start_the_back_off_again() -> None:
    """Whenever the news comes, the back-off counts from the last attempt; after it a woken workload is due at once."""
    parked = None
    for _ in range(5):
        parked = park(parked, POLICY, 100.0)
    assert parked is not None
    assert due_seconds(wake(wake(parked)), POLICY) == 110.0


def test_news_about_the_cause_ends_the_back_off() -> None:
    """Otherwise whoever stands behind takes the room; news about something else changes nothing."""
    parked = None
    for _ in range(5):
        parked = park(parked, POLICY, 100.0, need=Need(NewsKind.NODE_ADDED, frozenset({"cpu"})))
    assert parked is not None
    assert due_seconds(wake(parked, served_by(parked.need, freed(["memory"]))), POLICY) == 400.0
    assert due_seconds(wake(parked, served_by(parked.need, freed(["cpu"]))), POLICY) == 100.0
    assert due_seconds(wake(parked, served_by(parked.need, News(NewsKind.NODE_ADDED))), POLICY) == 100.0


def test_a_node_that_grew_and_is_full_ends_no_back_off() -> None:
    """What is free there does; what might be taken from others is worth a try once the rest is over."""
    need, parked = Need(NewsKind.NODE_ADDED, frozenset({"cpu"}), {"cpu": 2}), None
    for _ in range(5):
        parked = park(parked, POLICY, 100.0, need=need)
    assert parked is not None
    for free, due in ((2, 100.0), (1, 110.0)):
        news = News(NewsKind.GROWN, grown=(Growth(frozenset({"cpu"}), {"cpu": free}, {"cpu": 2}),))
        assert due_seconds(wake(parked, served_by(parked.need, news)), POLICY) == due


def test_no_news_ends_the_back_off_of_a_failure_of_another_kind() -> None:
    """A refused binding is no want of room: without this, its own release would be its news, in a hot loop."""
    assert due_seconds(wake(park(None, POLICY, 100.0, woken=True), served_by(None, freed(["cpu"]))), POLICY) == 101.0
