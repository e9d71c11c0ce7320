"""What a stream was told, and what it is told next."""

from __future__ import annotations

from model.report import EvictionCost, PreemptionNotice
from scheduler.link.stream import LinkRate, LinkStream

OLD = EvictionCost("u1", checkpoint_age_seconds=10.0)


def test_costs_that_only_grew_older_are_no_change() -> None:
    """Checkpoint age alone does not send costs again; a new checkpoint does; and they are asked once an interval."""
    stream = LinkStream("n1")
    asked: list[str] = []

    def due(age: float, now: float) -> tuple[EvictionCost, ...] | None:
        def ask(node: str) -> tuple[EvictionCost, ...]:
            asked.append(node)
            return (EvictionCost("u1", checkpoint_age_seconds=age),)

        return stream.costs_due(ask, now, interval_seconds=5.0)

    assert due(10.0, 100.0) == (OLD,)
    assert due(99.0, 104.0) is None and asked == ["n1"]
    assert due(20.0, 110.0) is None
    assert due(20.0, 120.0) is not None and asked == ["n1"] * 3


def test_a_flood_is_read_slowly() -> None:
    """So many a second and no more; a new second begins with nothing owed."""
    stream = LinkStream("n1")
    assert [stream.rest(now, 3, 100) for now in (5.0, 5.1, 5.25)] == [0.0, 0.0, 0.75]
    assert [stream.rest(now, 3, 100) for now in (6.0, 6.5, 7.5, 7.5, 8.0)] == [0.0, 0.0, 0.0, 0.0, 0.5]


def test_a_flood_of_long_messages_is_read_as_slowly() -> None:
    """Each 4 KiB count as a message: a report of 1 MiB is all that is read in a second."""
    stream = LinkStream("n1")
    assert [stream.rest(now, 100, 40_000) for now in (5.0, 5.0, 5.5, 5.5)] == [0.0] * 4
    assert stream.rest(6.5, 100, 1 << 20) == 1.0


def test_a_node_opens_links_now_and_then() -> None:
    """So many in ten seconds, whatever others do, and as many again after them."""
    openings = LinkRate(2)
    assert [openings.take("n1", now) for now in (5.0, 5.1, 14.9, 15.0, 15.0, 15.0)] == [
        True,
        True,
        False,
        True,
        True,
        False,
    ]
    assert openings.take("n2", 15.0)


def test_a_notice_is_told_once_and_taken_back_while_it_matters() -> None:
    """A changed one again; no withdrawal of one whose deadline has passed."""
    stream = LinkStream("n1")
    first, later = PreemptionNotice("u1", 50.0, "why"), PreemptionNotice("u1", 60.0, "why")
    other = PreemptionNotice("u2", 50.0, "why")
    assert stream.notices((first, other), 0.0) == ([first, other], [])
    assert stream.notices((first, other), 1.0) == ([], [])
    assert stream.notices((later,), 2.0) == ([later], ["u2"])
    assert stream.notices((), 61.0) == ([], [])
