"""Amounts of a working snapshot: charged and given back by row, independent of the snapshot and of copies."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scheduler_builders import node, pod, snapshot

from scheduler.core.filters.room_view import need_of
from scheduler.core.placement.working_amounts import WorkingAmounts
from scheduler.core.snapshot.podclass import class_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot

CLASSES = [class_of(pod(batch_cpu=size)) for size in (100, 250)]


def three() -> ClusterSnapshot:
    return snapshot(*(node(f"n{i}", batch_cpu=1000) for i in range(3)))


def amounts() -> WorkingAmounts:
    found = WorkingAmounts(three())
    found.free = found.free.copy()
    return found


def test_a_charge_takes_room_and_counts() -> None:
    """For each time a row is named; the rows are told once."""
    state = amounts()
    need = need_of(state.snapshot.resources, CLASSES[1])
    assert sorted(state.charge(CLASSES[1], [0, 2, 0], 1)) == [0, 2]
    assert (state.snapshot.free - state.free).tolist() == [
        (2 * need.used).tolist(),
        [0] * len(need.used),
        need.used.tolist(),
    ]
    assert (state.scored - state.snapshot.scored).tolist() == [
        (2 * need.scored).tolist(),
        [0] * len(need.scored),
        need.scored.tolist(),
    ]


def test_a_copy_is_independent() -> None:
    """Both ways."""
    one = amounts()
    other = one.copy()
    one.charge(CLASSES[0], [0], 1)
    other.charge(CLASSES[0], [1], 3)
    assert one.free[1].tolist() == one.snapshot.free[1].tolist()
    assert other.free[0].tolist() == one.snapshot.free[0].tolist()
    assert not np.array_equal(one.scored, other.scored)


changes = st.lists(st.tuples(st.sampled_from([0, 1]), st.lists(st.integers(0, 2), min_size=1, max_size=4)), max_size=8)


@given(changes)
def test_what_is_given_back_is_as_before(history: list[tuple[int, list[int]]]) -> None:
    """One by one with `charge`, or all at once with `give_back`."""
    one, other = amounts(), amounts()
    for state in (one, other):
        for index, rows in history:
            state.charge(CLASSES[index], rows, 1)
    for index, rows in reversed(history):
        one.charge(CLASSES[index], rows, -1)
    flat = [(row, CLASSES[index]) for index, rows in history for row in rows]
    needs = [need_of(other.snapshot.resources, pod_class) for _, pod_class in flat]
    width = len(other.snapshot.resources)
    rows = other.give_back(
        np.array([row for row, _ in flat], np.int64),
        [pod_class for _, pod_class in flat],
        np.array([need.used for need in needs], np.int64).reshape(len(flat), width),
        np.array([need.scored for need in needs], np.int64).reshape(len(flat), width),
    )
    assert rows == sorted({row for row, _ in flat})
    for state in (one, other):
        assert state.free.tolist() == state.snapshot.free.tolist()
        assert state.scored.tolist() == state.snapshot.scored.tolist()
