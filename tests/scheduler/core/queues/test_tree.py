"""The tree of queues."""

from __future__ import annotations

from itertools import permutations

import pytest
from queue_builders import queue

from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, Queue
from scheduler.core.queues.tree import QueueTree, tree_of

COMPANY = (queue("org"), queue("team-b", "org"), queue("team-a", "org"), queue("lone"))


def test_paths_lead_to_the_root() -> None:
    """Leaf first; a queue that nobody wrote hangs below the root."""
    tree = tree_of(COMPANY)
    assert tree.path("team-a") == ("team-a", "org", ROOT_QUEUE)
    assert tree.path("gone") == ("gone", ROOT_QUEUE)
    assert tree.path(ROOT_QUEUE) == (ROOT_QUEUE,)
    assert [tree.parent(name) for name in ("team-a", "org", "gone", ROOT_QUEUE)] == ["org", "", "", ""]


def test_children_are_sorted_and_parents_come_first() -> None:
    """Whatever the order in which queues are given."""
    for given in permutations(COMPANY):
        tree = tree_of(given)
        assert tree.children == {"": (DEFAULT_QUEUE, "lone", "org"), "org": ("team-a", "team-b")}
        assert tree.top_down == (DEFAULT_QUEUE, "lone", "org", "team-a", "team-b")
        assert [name for name in tree.top_down if tree.leaf(name)] == [DEFAULT_QUEUE, "lone", "team-a", "team-b"]


def test_default_is_always_there() -> None:
    """With weight 1 and no quota, unless somebody wrote it."""
    assert tree_of(()).queues == {DEFAULT_QUEUE: Queue()}
    assert tree_of(()).implicit
    written = tree_of((queue(DEFAULT_QUEUE, weight=7),))
    assert written.weight(DEFAULT_QUEUE) == 7
    assert not written.implicit
    assert written.weight("gone") == 1


def test_the_first_of_one_name_counts() -> None:
    """Duplicates do not overwrite (S103)."""
    assert tree_of((queue("a", weight=2), queue("a", weight=3))).weight("a") == 2


PROBLEMS: dict[str, tuple[tuple[Queue, ...], dict[str, str]]] = {
    "none": (COMPANY, {}),
    "missing parent": (
        (queue("a", "nowhere"),),
        {"a": 'queue "a": its parent "nowhere" does not exist; create it, or name another in spec.parent'},
    ),
    "its own parent": (
        (queue("a", "a"),),
        {"a": 'queue "a": its parents form a circle (a > a); give one of them another parent'},
    ),
    "a circle, and one beside it": (
        (queue("a", "b"), queue("b", "a"), queue("c", "b")),
        {
            "a": 'queue "a": its parents form a circle (a > b > a); give one of them another parent',
            "b": 'queue "b": its parents form a circle (b > a > b); give one of them another parent',
        },
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems(name: str) -> None:
    """Such a queue hangs below the root, what is below it stays there, and the sentence says what to mend."""
    queues, problems = PROBLEMS[name]
    tree = tree_of(queues)
    assert tree.problems == problems
    assert all(tree.parent(queue) == ROOT_QUEUE for queue in problems)
    assert sorted(tree.top_down) == sorted({DEFAULT_QUEUE, *(each.name for each in queues)})


def test_a_queue_below_a_broken_one_keeps_its_place() -> None:
    """It is not broken itself."""
    tree = tree_of((queue("a", "nowhere"), queue("b", "a")))
    assert tree.path("b") == ("b", "a", ROOT_QUEUE)
    assert "b" not in tree.problems


APART: dict[str, tuple[str, str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "siblings": ("team-a", "team-b", (("team-a",), ("team-b",))),
    "cousins": ("team-a", "lone", (("team-a", "org"), ("lone",))),
    "itself": ("team-a", "team-a", ((), ())),
    "its parent": ("team-a", "org", (("team-a",), ())),
    "unknown": ("gone", "team-a", (("gone",), ("team-a", "org"))),
}


@pytest.mark.parametrize("name", APART)
def test_apart(name: str) -> None:
    """Both paths below the lowest ancestor that they share."""
    one, other, expected = APART[name]
    tree: QueueTree = tree_of(COMPANY)
    assert tree.apart(one, other) == expected
    assert tree.apart(other, one) == expected[::-1]
