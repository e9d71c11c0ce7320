"""Notices stand from when they are given until their deadline, or until the pod is spared."""

from __future__ import annotations

from model.report import PreemptionNotice
from scheduler.link.notices import NoticeBoard


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def notice(uid: str, deadline: float = 130.0, reason: str = "why") -> PreemptionNotice:
    return PreemptionNotice(uid, deadline, reason)


def test_a_notice_stands_until_its_deadline() -> None:
    """Past ones are neither told nor kept."""
    clock = Clock()
    board = NoticeBoard(clock)
    board.put("a", notice("u1", 110.0))
    board.put("b", notice("u2"))
    assert [(node, each.pod_uid) for node, each in board.all()] == [("a", "u1"), ("b", "u2")]
    clock.now = 110.0
    assert (board.of("a"), board.of("b")) == ((), (notice("u2"),))
    for number in range(1_100):
        board.put("b", notice(f"v{number}"))
    assert "a" not in board._open


def test_thousands_are_put_without_a_look_at_all_of_them_each_time() -> None:
    """Whoever may make a gang chooses how many of its members ask to be told."""
    clock = Clock()
    board, asked = NoticeBoard(clock), 0

    def counting() -> float:
        nonlocal asked
        asked += 1
        return clock.now

    board._clock = counting
    for number in range(10_000):
        board.put(f"n{number % 100}", notice(f"u{number}"))
    assert (asked < 50, sum(1 for _ in board.all())) == (True, 10_000)


def test_the_newest_counts_and_the_spared_are_not_told() -> None:
    """One notice a pod; sparing a pod that was never told changes nothing."""
    board = NoticeBoard(Clock())
    board.put("a", notice("u1"))
    board.put("a", notice("u1", reason="another"))
    board.put("a", notice("u2"))
    board.remove("a", "u2")
    board.remove("a", "stranger")
    board.remove("nowhere", "u1")
    assert board.of("a") == (notice("u1", reason="another"),)
