"""Domains of nested labels: who is in which, how many members each holds, and which are taken first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scheduler_builders import node, snapshot

from model.workload import TopologyLevel
from scheduler.core.placement.domains import TopologyDomains, domains_of

PLACES = (("b1", "r1"), ("b1", "r1"), ("b1", "r2"), ("b2", "r1"), ("", "r1"), ("b2", ""))
KEYS = ("block", "rack")


def nodes() -> Any:
    return snapshot(
        *(
            node(f"n{i}", labels={key: value for key, value in zip(KEYS, place, strict=True) if value})
            for i, place in enumerate(PLACES)
        )
    ).traits


def topology_domains(*multiples: int) -> TopologyDomains:
    levels = tuple(TopologyLevel(key, True, multiple) for key, multiple in zip(KEYS, multiples, strict=True))
    return TopologyDomains(domains_of(nodes(), KEYS), levels)


def test_a_domain_is_named_within_those_around_it() -> None:
    """Rack r1 of block b2 is another than that of b1; who lacks a label is in none."""
    found = domains_of(nodes(), KEYS)
    assert found.names == ((("b1",), ("b2",)), (("b1", "r1"), ("b1", "r2"), ("b2", "r1")))
    assert [codes.tolist() for codes in found.codes] == [[0, 0, 0, 1, -1, 1], [0, 0, 1, 2, -1, -1]]
    assert [parents.tolist() for parents in found.parents] == [[-1, -1], [0, 0, 1]]


def test_sums_by_domain() -> None:
    """Rows in no domain count nowhere."""
    found = domains_of(nodes(), KEYS)
    numbers = np.array([1, 2, 4, 8, 16, 32], np.int64)
    assert found.sums(numbers, 0, found.codes[0]).tolist() == [7, 40]
    assert found.sums(numbers, 1, found.codes[1]).tolist() == [3, 4, 8]


@pytest.mark.parametrize(
    ("multiples", "level", "held"),
    [((1, 1), 0, [8, 5]), ((1, 1), 1, [5, 3, 5]), ((1, 2), 0, [6, 4]), ((4, 2), 0, [4, 4]), ((4, 1), 0, [8, 4])],
)
def test_slots_are_multiples_of_their_level_and_of_those_inside(
    multiples: tuple[int, int], level: int, held: list[int]
) -> None:
    """A rack of five places holds four members that come in pairs, and its block counts those four."""
    room = np.array([2, 3, 3, 5, 9, 9], np.int64)
    assert topology_domains(*multiples).slots(room, level).tolist() == held


@pytest.mark.parametrize(
    ("want", "rows"),
    [(3, [2, 2, 2]), (5, [0, 0, 1, 1, 1]), (8, [0, 0, 1, 1, 1, 2, 2, 2]), (1, [2])],
)
def test_allot_fills_few_domains_well(want: int, rows: list[int]) -> None:
    """In block b1: the rack that is filled best by the last of them."""
    room = np.array([2, 3, 3, 5, 9, 9], np.int64)
    assert topology_domains(1, 1).allot(room, want, 0, 0).tolist() == rows


def test_allot_gives_whole_multiples() -> None:
    """Five wanted in pairs are four."""
    assert len(topology_domains(2, 1).allot(np.array([2, 3, 3, 5, 9, 9], np.int64), 5, 0, 0)) == 4


def test_everywhere_goes_over_the_widest_domains() -> None:
    """The block that holds all with the least to spare, and never a node outside."""
    room = np.array([2, 3, 3, 5, 9, 0], np.int64)
    assert topology_domains(1, 1).everywhere(room, 4).tolist() == [3, 3, 3, 3]
    assert topology_domains(1, 1).everywhere(room, 20).tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3]
    assert topology_domains(1, 1).everywhere(np.zeros(6, np.int64), 3).tolist() == []
