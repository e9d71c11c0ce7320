"""Who is tried where more are ready than a turn tries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.workload import WorkloadId
from scheduler.core.queueing.attempts import Attempts


def turn(attempts: Attempts, order: str, most: int, free: str = "") -> str:
    """Whom a turn tries of those that are ready, a letter each; `free` wait on without an attempt."""
    attempts.begin((WorkloadId.pod(name) for name in order), most)
    tried = ""
    for name in order:
        subject = WorkloadId.pod(name)
        if attempts.spent:
            break
        if attempts.may(subject):
            attempts.looked_at(subject, tried=name not in free)
            tried += name if name not in free else ""
    assert attempts.end() is (len(tried) + sum(name in free for name in order) < len(order))
    return tried


def test_by_the_order_alone_while_all_have_their_turn() -> None:
    attempts = Attempts()
    assert [turn(attempts, "abcd", 4) for _ in range(3)] == ["abcd"] * 3
    assert turn(attempts, "abxxxxc", 3, free="x") == "abc"


@pytest.mark.parametrize(
    ("most", "tried"),
    [
        pytest.param(4, ["abcd", "abce", "abcf", "abcd"], id="one in an eighth, at least one"),
        pytest.param(1, ["a", "b", "c", "d"], id="one at a time: one after another"),
    ],
)
def test_who_was_passed_over_longest_is_tried_beside_the_first(most: int, tried: list[str]) -> None:
    attempts = Attempts()
    assert [turn(attempts, "abcdef", most) for _ in tried] == tried


def test_an_eighth_goes_to_them() -> None:
    attempts, order = Attempts(), "".join(chr(ord("a") + number) for number in range(24))
    assert [turn(attempts, order, 16) for _ in range(3)] == [order[:16], order[:14] + "qr", order[:14] + "st"]


def test_who_is_not_ready_any_more_waits_anew() -> None:
    attempts = Attempts()
    turn(attempts, "abcd", 2)
    assert turn(attempts, "ab", 2) == "ab"
    assert [turn(attempts, "abdc", 2) for _ in range(2)] == ["ab", "ad"]


@given(st.integers(1, 40), st.integers(1, 20))
def test_everybody_is_tried_in_time(ready: int, most: int) -> None:
    """Although all that were tried are ready again at once."""
    attempts, order = Attempts(), "".join(chr(ord("a") + number) for number in range(ready))
    turns = [turn(attempts, order, most) for _ in range(2 + ready // max(most // 8, 1))]
    assert {name for tried in turns for name in tried} == set(order)
    assert all(len(tried) == min(most, ready) for tried in turns)
