"""Lines have their turn one after the other."""

from __future__ import annotations

from scheduler.core.queueing.one_of_each import one_of_each


def test_the_first_of_each_comes_before_the_second_of_any() -> None:
    """A line that has ended is left out, and so is an empty one."""
    assert "".join(one_of_each(["abcd", "", "12", "X"])) == "a1Xb2cd"
    assert list(one_of_each([])) == []
