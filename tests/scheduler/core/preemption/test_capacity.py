"""The arithmetic of room: how many fit, where they go, and who can be put back without taking it away."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.preemption.capacity import Capacity, RoomBalance, RoomRequest, merged, room, taken, useful_rows

NO_LIMIT = 1 << 30


def ask(want: int, *request: int, most: list[int] | int = NO_LIMIT, rows: int = 3) -> RoomRequest:
    limits = [most] * rows if isinstance(most, int) else most
    return RoomRequest(np.array(request, np.int64), np.array(limits, np.int64), want)


def free(*lines: tuple[int, ...]) -> np.ndarray:
    return np.array(lines, np.int64)


EVERY = np.arange(3)
LINES = free((4, 9), (2, 1), (-1, 5))


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (ask(1, 2, 0), [2, 1, 0]),
        (ask(1, 1, 3), [3, 0, 0]),
        (ask(1, 0, 1), [9, 1, 5]),
        (ask(1, 1, 0, most=[1, 0, 9]), [1, 0, 0]),
        (ask(1, 0, 0, most=[3, 2, 1]), [3, 2, 1]),
    ],
)
def test_room(asked: RoomRequest, wanted: list[int]) -> None:
    """The scarcest column counts, never below nothing, and no row takes more than it may."""
    assert room(asked, LINES, EVERY).tolist() == wanted


def test_room_of_some_rows() -> None:
    """`free` has a line for each of them."""
    assert room(ask(1, 1, 0, most=[0, 1, 2]), LINES[[1, 0]], np.array([1, 0])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("want", "fitting", "got"),
    [
        (3, [2, 3, 1], [0, 3, 0]),
        (4, [2, 3, 1], [1, 3, 0]),
        (9, [2, 3, 1], [2, 3, 1]),
        (2, [5, 9, 0], [2, 0, 0]),
        (0, [1, 1, 1], [0, 0, 0]),
    ],
)
def test_taken(want: int, fitting: list[int], got: list[int]) -> None:
    """The fewest rows, the roomiest first; where one takes all, the first."""
    assert taken(ask(want, 1), np.array(fitting, np.int64)).tolist() == got


def test_fits() -> None:
    """On these rows alone; of several classes each takes from what the one before left."""
    one = Capacity((ask(3, 1, 0),), LINES)
    assert Capacity((ask(6, 1, 0),), LINES).fits(LINES, EVERY)
    assert not Capacity((ask(7, 1, 0),), LINES).fits(LINES, EVERY)
    assert one.fits(LINES, EVERY) and not one.fits(LINES[[1]], np.array([1]))
    two = Capacity((ask(1, 4, 0), ask(2, 1, 0)), LINES)
    assert two.fits(LINES, EVERY) and two.want == 3
    assert not Capacity((ask(1, 4, 0), ask(3, 1, 0)), LINES).fits(LINES, EVERY)
    assert LINES.tolist() == [[4, 9], [2, 1], [-1, 5]]


def test_within() -> None:
    """Other rows take nobody."""
    inside = Capacity((ask(3, 1, 0),), LINES).within(np.array([1]))
    assert room(inside.asks[0], LINES, EVERY).tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    ("most", "wanted"),
    [
        (3, [([4, 1], 1, [2, 2, 2]), ([3, 2], 2, [9, 1, 9]), ([1, 9], 1, [5, 5, 5])]),
        (2, [([4, 2], 3, [2, 1, 2]), ([1, 9], 1, [5, 5, 5])]),
        (1, [([4, 9], 4, [2, 1, 2])]),
    ],
)
def test_merged(most: int, wanted: list[tuple[list[int], int, list[int]]]) -> None:
    """Neighbours ask for the largest amounts and have the fewest places, so what fits them fits each."""
    asks = [ask(1, 4, 1, most=2), ask(2, 3, 2, most=[9, 1, 9]), ask(1, 1, 9, most=5)]
    assert [(each.request.tolist(), each.want, each.most.tolist()) for each in merged(asks, most)] == wanted


def test_useful_rows() -> None:
    """As many as are needed, of each ask."""
    assert useful_rows(Capacity((ask(4, 1, 0),), LINES)).tolist() == [0]
    assert useful_rows(Capacity((ask(5, 1, 0),), LINES)).tolist() == [0, 1]
    assert useful_rows(Capacity((ask(1, 1, 0), ask(6, 0, 1, most=[0, 9, 9])), LINES)).tolist() == [0, 1, 2]


victims = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3)


@given(st.lists(victims, max_size=8), st.integers(0, 8))
def test_a_balance_lets_back_whom_there_is_room_for(groups: list[list[tuple[int, int, int]]], want: int) -> None:
    """One group after the other, and exactly those with whom everybody still fits."""
    asked = ask(want, 2, 1)
    left = free((6, 6), (5, 5), (4, 3))
    if int(room(asked, left, EVERY).sum()) < want:
        return
    balance = RoomBalance(asked, left.copy(), EVERY)
    for group in groups:
        without = left.copy()
        for row, *amounts in group:
            without[row] -= amounts
        still = int(room(asked, without, EVERY).sum()) >= want
        assert balance.put_back([(row, list(amounts)) for row, *amounts in group]) is still
        left = without if still else left
