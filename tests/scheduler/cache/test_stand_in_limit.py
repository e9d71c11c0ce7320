"""Stand-ins of a namespace are bounded; who waits for room comes in its turn."""

from __future__ import annotations

from itertools import count as counted

from scheduler.cache.stand_in_limit import StandInLimit

SECONDS = counted()
"""Each call comes a second after the last."""


def test_bounded_by_namespace() -> None:
    """One namespace's jobs keep no other's from being looked at."""
    limit = StandInLimit(10)
    assert limit.take("a/one", 6, next(SECONDS)) and limit.take("a/two", 4, next(SECONDS))
    assert not limit.take("a/three", 1, next(SECONDS))
    assert limit.take("b/one", 10, next(SECONDS))
    assert limit.next("a", next(SECONDS)) is None


def test_who_waits_comes_in_turn() -> None:
    """The first that fits, and once: asked again it keeps its place."""
    limit = StandInLimit(10)
    assert limit.take("a/one", 6, next(SECONDS)) and limit.take("a/two", 4, next(SECONDS))
    for name, count in (("three", 8), ("four", 5), ("five", 1), ("three", 8)):
        assert not limit.take(f"a/{name}", count, next(SECONDS))
    limit.give_back("a/one")
    assert limit.next("a", next(SECONDS)) == "a/four"
    assert limit.take("a/four", 5, next(SECONDS)) and limit.next("a", next(SECONDS)) == "a/five"
    limit.give_back("a/five")
    assert limit.next("a", next(SECONDS)) is None
    limit.give_back("a/two")
    limit.give_back("a/four")
    assert limit.next("a", next(SECONDS)) == "a/three"


def test_changed() -> None:
    """What asks for another number keeps no other."""
    limit = StandInLimit(10)
    assert limit.take("a/one", 6, next(SECONDS))
    limit.give_back("a/one")
    assert limit.take("a/one", 10, next(SECONDS)) and not limit.take("a/two", 1, next(SECONDS))
    limit.give_back("a/two")
    limit.give_back("a/one")
    assert limit.next("a", next(SECONDS)) is None


def test_made_again_and_again() -> None:
    """A namespace gets as many as it may have at once, then 2,500 a second; other namespaces' come meanwhile."""
    limit = StandInLimit(10_000)
    assert limit.take("a/one", 10_000, 0.0)
    limit.give_back("a/one")
    assert not limit.take("a/one", 10_000, 0.0) and limit.take("b/one", 10_000, 0.0)
    assert limit.next("a", 0.0) is None and limit.waiting() == ("a",)
    due = limit.next_due()
    assert due is not None and 0.0 < due < 0.01
    assert limit.next("a", due) == "a/one" and limit.take("a/one", 10_000, due)
    limit.give_back("a/one")
    assert not limit.take("a/one", 1, 3.9)
    assert limit.next("a", 4.1) == "a/one"


def test_nobody_is_due_where_there_is_no_room() -> None:
    """Time alone gives none."""
    limit = StandInLimit(10)
    assert limit.take("a/one", 10, 0.0) and not limit.take("a/two", 1, 0.0)
    assert limit.next_due() is None
