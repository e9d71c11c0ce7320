"""Words of objects that many pods follow: read in a tenth of the time, the newest of each; none is lost."""

from __future__ import annotations

from collections.abc import Iterable

from kube import objects
from kube.informer import Change, ChangeKind
from scheduler.cache.followed_words import FollowedWords

ADDED, MODIFIED, DELETED = ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.DELETED


def word(size: int, kind: ChangeKind = MODIFIED, name: str = "train", namespace: str = "a") -> Change[objects.PodGroup]:
    metadata = objects.Metadata(name=name, namespace=namespace, uid=name)
    return Change(kind, objects.PodGroup(metadata, objects.PodGroupSpec(min_member=size)))


def sizes(found: Iterable[Change[objects.PodGroup]]) -> list[tuple[ChangeKind, object]]:
    return [(each.kind, each.object.spec.min_member) for each in found]


def test_words_of_one_namespace_wait_once_they_took_long() -> None:
    """The newest of each object is read then, and other namespaces wait for nothing."""
    words = FollowedWords()
    assert not words.keep(word(1, ADDED), 0.0) and not words.keep(word(1, ADDED, "other"), 0.0)
    words.went_through("a", 0.2, 0.0)
    assert all(words.keep(word(size), 0.1) for size in (2, 3)) and words.keep(word(4, name="other"), 0.1)
    assert not words.keep(word(5, namespace="b"), 0.1)
    assert words.next_due() == 1.0 and not list(words.take(0.9))
    assert sizes(words.take(1.0)) == [(MODIFIED, 3), (MODIFIED, 4)]
    assert words.next_due() is None and not words.keep(word(6), 1.1)


def test_one_that_took_long_again_leaves_the_others_for_later() -> None:
    words = FollowedWords()
    for name in ("train", "other"):
        assert not words.keep(word(1, ADDED, name), 0.0)
    words.went_through("a", 1.0, 0.0)
    assert words.keep(word(2), 0.0) and words.keep(word(3, name="other"), 0.0)
    taken = words.take(9.0)
    assert next(taken).object.spec.min_member == 2
    words.went_through("a", 1.0, 9.0)
    assert not list(taken) and words.next_due() == 19.0
    assert sizes(words.take(19.0)) == [(MODIFIED, 3)]


def test_one_that_is_not_known_is_read_at_once() -> None:
    """After a restart pods come before what they were made for: each of them alone would be placed without quota."""
    words = FollowedWords()
    words.went_through("a", 9.0, 0.0)
    assert not words.keep(word(1, ADDED), 0.0) and words.keep(word(2), 0.0)


def test_one_that_is_made_anew_is_gone_first() -> None:
    """Whoever deletes and makes it again and again has it read no more often."""
    words = FollowedWords()
    assert not words.keep(word(1, ADDED), 0.0)
    words.went_through("a", 1.0, 0.0)
    said = (word(2), word(2, DELETED), word(3, ADDED), word(4), word(4, DELETED), word(5, ADDED), word(6))
    assert all(words.keep(each, 0.0) for each in said)
    assert sizes(words.take(9.0)) == [(DELETED, 4), (MODIFIED, 6)]
    assert not words.keep(word(6, DELETED), 9.0)
    words.went_through("a", 9.0, 9.0)
    assert not words.keep(word(7, ADDED), 9.0)
