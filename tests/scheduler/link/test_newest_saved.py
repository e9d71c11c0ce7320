"""Newest saved states that wait: one of each pod and node that tells, up to a bound."""

from __future__ import annotations

from model.report import CheckpointSaved
from scheduler.link.newest_saved import NewestSaved


def saved(uid: str, step: int) -> CheckpointSaved:
    return CheckpointSaved("d", uid, uid, float(step), step)


def test_the_newest_word_of_a_node_on_a_pod_waits() -> None:
    """Each node's own; once taken nothing waits."""
    waiting = NewestSaved()
    assert not waiting
    waiting.put([("n1", saved("u", 1)), ("n2", saved("u", 9)), ("n1", saved("v", 1))])
    waiting.put([("n1", saved("u", 2))])
    assert waiting
    assert [(node, each.pod_uid, each.step) for node, each in waiting.take()] == [
        ("n2", "u", 9),
        ("n1", "v", 1),
        ("n1", "u", 2),
    ]
    assert not waiting and waiting.take() == []


def test_beyond_the_bound_the_oldest_goes() -> None:
    """An agent may tell of pods that do not exist."""
    waiting = NewestSaved()
    waiting.put(("n1", saved(f"u{number}", number)) for number in range(65_537))
    taken = waiting.take()
    assert (len(taken), taken[0][1].pod_uid, taken[-1][1].pod_uid) == (65_536, "u1", "u65536")
