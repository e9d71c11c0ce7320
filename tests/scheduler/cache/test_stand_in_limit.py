"""Stand-ins of a namespace are bounded; who waits for room comes in its turn."""

from __future__ import annotations

from scheduler.cache.stand_in_limit import StandInLimit


def test_bounded_by_namespace() -> None:
    """One namespace's jobs keep no other's from being looked at."""
    limit = StandInLimit(10)
    assert limit.take("a/one", 6) and limit.take("a/two", 4)
    assert not limit.take("a/three", 1)
    assert limit.take("b/one", 10)
    assert limit.next("a") is None


def test_who_waits_comes_in_turn() -> None:
    """The first that fits, and once: asked again it keeps its place."""
    limit = StandInLimit(10)
    assert limit.take("a/one", 6) and limit.take("a/two", 4)
    for name, count in (("three", 8), ("four", 5), ("five", 1), ("three", 8)):
        assert not limit.take(f"a/{name}", count)
    limit.give_back("a/one")
    assert limit.next("a") == "a/four"
    assert limit.take("a/four", 5) and limit.next("a") == "a/five"
    limit.give_back("a/five")
    assert limit.next("a") is None
    limit.give_back("a/two")
    limit.give_back("a/four")
    assert limit.next("a") == "a/three"


def test_changed() -> None:
    """What asks for another number keeps no other."""
    limit = StandInLimit(10)
    assert limit.take("a/one", 6)
    limit.give_back("a/one")
    assert limit.take("a/one", 10) and not limit.take("a/two", 1)
    limit.give_back("a/two")
    limit.give_back("a/one")
    assert limit.next("a") is None
