"""What asking for more than is needed brings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from order_builders import drf
from queue_builders import CPU, MEMORY, books, queue

vectors = st.tuples(st.integers(1, 5), st.integers(1, 5))


@given(ours=vectors, theirs=vectors, more=st.tuples(st.integers(0, 5), st.integers(0, 5)), weight=st.integers(1, 3))
def test_lies_do_not_pay(ours: tuple[int, int], theirs: tuple[int, int], more: tuple[int, int], weight: int) -> None:
    """But for the last task, which the rounding to whole ones may give to either."""
    capacity = {CPU: 97, MEMORY: 89}
    needs = {"a": {CPU: ours[0], MEMORY: ours[1]}, "b": {CPU: theirs[0], MEMORY: theirs[1]}}
    lie = {CPU: ours[0] + more[0], MEMORY: ours[1] + more[1]}
    queues = [queue("a", weight=weight), queue("b")]
    honest, lied = (drf(books(queues, capacity), each) for each in (needs, needs | {"a": lie}))
    assert lied["a"] <= honest["a"] + 1
