"""Which rows changed since a position, or that too much did to say."""

from __future__ import annotations

from scheduler.core.placement.row_log import RowLog


def test_rows_since_a_position() -> None:
    """Each once, ascending; nothing where nothing changed."""
    log = RowLog()
    start = log.position
    log.add([3, 1])
    middle = log.position
    log.add([1, 7])
    assert (log.since(start), log.since(middle), log.since(log.position)) == ([1, 3, 7], [1, 7], [])


def test_what_is_forgotten_counts_as_everything() -> None:
    """Many changes, and a position from before the log was cut."""
    log = RowLog()
    log.add(range(5000))
    assert log.since(0) is None
    log.add(range(40_000))
    old = log.position
    log.add([1])
    log.add([2])
    assert log.since(0) is None and log.since(old) == [1, 2]
