"""Load arrays are filled by row, again for changed rows, and changed in a copy without touching the original."""

from __future__ import annotations

import numpy as np
from load_builders import NOW, arrays_of, assigned, load, measured, prod_class, usage
from scheduler_builders import node, snapshot

from model.loadlimits import LoadLimits, UsageLimits
from model.qos import PriorityBand
from model.report import Usage
from scheduler.core.load.arrays import LoadArrays, capacities, with_changed_rows
from scheduler.core.load.node import Level, NodeLoad
from scheduler.core.load.policy import LoadPolicy

POLICY = LoadPolicy(limits=UsageLimits(65), prod_limits=UsageLimits(50))
MILLIS, BYTES = usage(13.6, 22.4).cpu_millis, usage(13.6, 22.4).memory_bytes


def same(one: LoadArrays, other: LoadArrays) -> bool:
    arrays = [
        (a, b)
        for x, y in ((one.scored, other.scored), (one.limited, other.limited), (one.prod, other.prod))
        for a, b in ((x.used, y.used), (x.seconds, y.seconds))
    ]
    limits = [(one.limits.usage, other.limits.usage), (one.limits.prod, other.limits.prod)]
    return all(np.array_equal(a, b) for a, b in (*arrays, *limits)) and one.now == other.now


def test_redrawing_changed_rows_comes_to_the_same_as_drawing_all() -> None:
    old = [load(measured(cpus), None, [], POLICY) for cpus in (1, 2, 3)]
    new = load(measured(7, 7), None, [assigned(prod=True)], POLICY, LoadLimits(UsageLimits(90)))
    before = arrays_of(*old, policy=POLICY)
    after = with_changed_rows(before, [(1, new), (2, NodeLoad())], NOW + 5)
    assert same(after, arrays_of(old[0], new, NodeLoad(), policy=POLICY, now=NOW + 5))
    assert same(before, arrays_of(*old, policy=POLICY))


def test_put() -> None:
    """The estimate is added to all use, and to prod use where the pod is prod; a negative count takes it back."""
    drawn = arrays_of(load(measured(), None, [], POLICY), load(measured(), None, [], POLICY), policy=POLICY)
    drawn.put(1, prod_class(), 2)
    drawn.put(1, prod_class(band=PriorityBand.FREE))
    assert drawn.scored.used.tolist() == drawn.limited.used.tolist() == [[0, 0], [3 * MILLIS, 3 * BYTES]]
    assert drawn.prod.used.tolist() == [[0, 0], [2 * MILLIS, 2 * BYTES]]
    drawn.put(1, prod_class(), -2)
    assert drawn.prod.used.tolist() == [[0, 0], [0, 0]]


def test_nobody_uses_less_than_nothing() -> None:
    """Whatever an agent says: below the least int64, an estimate taken back would make it the largest."""
    drawn = arrays_of(NodeLoad(Level(Usage(-(1 << 63), -1), NOW), Level(Usage(-(1 << 63), -1), NOW)), policy=POLICY)
    drawn.put(0, prod_class(), -1)
    assert drawn.scored.used.tolist() == drawn.limited.used.tolist() == [[-MILLIS, -BYTES]]


def test_a_copy_is_independent() -> None:
    drawn = arrays_of(load(measured(), None, [], POLICY), policy=POLICY)
    drawn.copy().put(0, prod_class())
    assert same(drawn, arrays_of(load(measured(), None, [], POLICY), policy=POLICY))


def test_expired() -> None:
    drawn = arrays_of(load(measured(at=NOW - 300)), load(measured(at=NOW - 299)), NodeLoad())
    assert drawn.expired(drawn.scored).tolist() == [True, False, False]


def test_no_nodes() -> None:
    assert arrays_of().scored.used.shape == (0, 2)


def test_a_resource_nobody_lists_has_no_capacity() -> None:
    assert capacities(snapshot(node("n1"), node("n2")), "cpu").tolist() == [0, 0]
