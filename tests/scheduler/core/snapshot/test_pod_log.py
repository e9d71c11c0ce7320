"""An append-only log that copies share without ever seeing each other's later entries."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.snapshot.pod_log import Entry, PodLog, PodLogEntries, kept, merged


def told(entries: PodLogEntries) -> list[Entry]:
    return list(zip(entries.numbers.tolist(), entries.rows.tolist(), entries.amounts.tolist(), strict=True))


def some(number: int, first: int = 0) -> list[Entry]:
    return [(i % 7, i, 1) for i in range(first, first + number)]


def test_entries_are_read_from_any_position() -> None:
    """Stored or new: the same, and in order."""
    log, all_of_them = PodLog(), some(5000)
    for start in range(0, 5000, 100):
        log.extend(all_of_them[start : start + 100])
        assert len(log) == start + 100
    for position in (0, 1, 2047, 2048, 4095, 4999, 5000):
        assert told(log.since(position)) == all_of_them[position:]


def test_few_new_entries_are_read_as_they_are() -> None:
    """None says that `since` has to be asked."""
    log = PodLog()
    log.extend(some(3000))
    log.extend(some(2, 3000))
    assert log.fresh(0) is None
    assert log.fresh(3000) == some(2, 3000)
    assert log.fresh(3002) == []


def test_copies_go_their_own_way() -> None:
    """What one writes after the copy the other never reads, also where both store much."""
    log = PodLog()
    log.extend(some(3000))
    other = log.copy()
    log.extend([(1, 1, 1)] * 3000)
    other.extend([(2, 2, 2)] * 3000)
    third = other.copy()
    third.extend([(3, 3, 3)] * 9000)
    assert told(log.since(3000)) == [(1, 1, 1)] * 3000
    assert told(other.since(3000)) == [(2, 2, 2)] * 3000
    assert told(third.since(3000)) == [(2, 2, 2)] * 3000 + [(3, 3, 3)] * 9000
    assert told(log.since(0))[:3000] == told(other.since(0))[:3000] == some(3000)


def test_a_merged_log_stands_for_all_before() -> None:
    """And goes on from there."""
    log = PodLog()
    log.extend([(1, 0, 1), (1, 0, 1), (2, 3, 1), (2, 3, -1)])
    copy = log.copy()
    log.replace(merged(log.since(0)))
    assert told(log.since(0)) == [(1, 0, 2)]
    log.extend([(5, 5, 1)])
    assert told(log.since(0)) == [(1, 0, 2), (5, 5, 1)]
    assert len(copy) == 4


entries = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-2, 2)), max_size=40)


@given(entries)
def test_merging_keeps_every_sum(written: list[Entry]) -> None:
    """One entry for each number and row that anybody is left on, in order."""
    log = PodLog()
    log.extend(written)
    sums: dict[tuple[int, int], int] = {}
    for number, row, amount in written:
        sums[number, row] = sums.get((number, row), 0) + amount
    assert told(merged(log.since(0))) == [(*key, sums[key]) for key in sorted(sums) if sums[key]]


def test_kept_entries() -> None:
    """Those that the mask names."""
    log = PodLog()
    log.extend(some(3))
    assert told(kept(log.since(0), np.array([True, False, True]))) == [(0, 0, 1), (2, 2, 1)]
