"""Few log lines for many causes."""

from __future__ import annotations

from scheduler.link.log_limit import LogLimit


def test_one_line_an_interval_stands_for_all_of_it() -> None:
    """The first at once; a later one says how many it stands for."""
    limit = LogLimit(1.0)
    assert [limit.due(now) for now in (5.0, 5.1, 5.9, 6.0, 6.5, 9.0, 10.0)] == [0, None, None, 2, None, 1, 0]
