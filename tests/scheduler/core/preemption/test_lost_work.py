"""Lost work of a pod, and whose work is as safe as whose."""

from __future__ import annotations

import pytest

from scheduler.core.preemption.lost_work import lost_seconds, saved_by_all


@pytest.mark.parametrize(
    ("started", "saved", "lost"),
    [(0.0, None, 0.0), (100.0, None, 100.0), (100.0, 150.0, 50.0), (100.0, 90.0, 100.0), (100.0, 300.0, 0.0)],
    ids=["not started", "no checkpoint", "a checkpoint", "one of the run before", "one from a clock ahead"],
)
def test_lost_seconds(started: float, saved: float | None, lost: float) -> None:
    assert lost_seconds(started, saved, 200.0) == lost


def test_one_saves_for_all() -> None:
    assert saved_by_all({"a": 5.0, "other": 9.0}, frozenset("abc")) == {"a": 5.0, "b": 5.0, "c": 5.0}


def test_of_several_who_save_the_oldest_counts_for_the_others() -> None:
    assert saved_by_all({"a": 5.0, "b": 3.0}, frozenset("abc")) == {"a": 5.0, "b": 3.0, "c": 3.0}


def test_nobody_saves() -> None:
    assert saved_by_all({"other": 9.0}, frozenset("ab")) == {}
