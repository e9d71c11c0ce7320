"""The tournament against its definition, step by step and where queues are level for long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from order_builders import ORGS, light

from model.queue import QueueOrder
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.bracket import Revision, ShareOf
from scheduler.core.queueing.order import Ranking, Tournament, in_order
from scheduler.core.queues.tree import QueueTree, tree_of

NOW = 100.0
WITH_STRICT = tree_of(
    msgspec.structs.replace(each, order=QueueOrder.STRICT_FIFO) if each.name in ("a1", "c") else each
    for each in ORGS.queues.values()
)


def reference(
    waiting: list[Candidate],
    tree: QueueTree,
    share_of: Callable[[str], Fraction],
    borrows: Callable[[str, Candidate], bool],
) -> Iterator[Candidate]:
    """By the definition: at each step compare all children of each queue, from the root down."""
    left, ranking = list(waiting), Ranking(NOW)

    def strict(node: str) -> bool:
        return node in tree.queues and tree.queues[node].order is QueueOrder.STRICT_FIFO

    def by_time(item: Candidate) -> tuple[float, str]:
        return (item.workload.eligible_seconds, item.workload.uid)

    def head(node: str) -> Candidate | None:
        below = [found for child in tree.children.get(node, ()) if (found := head(child))]
        own = [each for each in left if each.workload.queue == node]
        below += [min(own, key=by_time if strict(node) else ranking.within_queue)] if own else []
        names = {id(each): child(node, each) for each in below}
        return min(below, key=lambda each: key(names[id(each)], each), default=None)

    def child(node: str, item: Candidate) -> str:
        path = tree.path(item.workload.queue)
        return path[path.index(node) - 1] if path.index(node) else node

    def key(name: str, item: Candidate) -> tuple[object, ...]:
        own = ranking.within_queue(item)
        return (own[0], borrows(name, item), share_of(name), own, name)

    while found := head(""):
        left.remove(found)
        yield found


jobs = st.lists(
    st.tuples(
        st.sampled_from(["a1", "a2", "b1", "b2", "c"]),
        st.integers(0, 2),
        st.sampled_from([None, None, 50.0]),
        st.integers(0, 2),
    ),
    max_size=10,
)


class Steps(msgspec.Struct):
    """Jobs that wait, the first shares, in sevenths, and which steps place what is yielded; `told`: of changes."""

    waiting: list[Candidate]
    start: list[int]
    placed: set[int]
    tree: QueueTree = ORGS
    told: bool = False

    def ours(self, share_of: ShareOf, revision: Revision) -> Iterator[Candidate]:
        known = revision if self.told else None
        borrowing = {name: partial(borrows, name) for name in self.tree.queues}
        return in_order(self.waiting, Tournament(share_of, self.tree, borrowing, revision=known), NOW)

    def reference(self, share_of: ShareOf, revision: Revision) -> Iterator[Candidate]:
        return reference(self.waiting, self.tree, share_of, borrows)

    def run(self, way: Callable[[ShareOf, Revision], Iterator[Candidate]]) -> list[str]:
        """Whose turn it is, one after the other; what is placed raises the shares along its path."""
        shares = {name: Fraction(share, 7) for name, share in zip(sorted(ORGS.queues), self.start, strict=True)}
        seen: list[str] = []
        changes = [0]
        for item in way(shares.__getitem__, lambda: changes[0]):
            for node in self.tree.path(item.workload.queue)[:-1] if len(seen) in self.placed else ():
                shares[node] += Fraction(1, 7)
                changes[0] += 1
            seen.append(item.workload.uid)
        return seen


def borrows(name: str, item: Candidate) -> bool:
    """Its queue (2) or the one above it (1) would borrow for it."""
    return item.workload.bound == len(name)


@given(drawn=jobs, start=st.lists(st.integers(0, 4), min_size=8, max_size=8), raised=st.booleans())
def test_the_tournament_is_the_definition(
    drawn: list[tuple[str, int, float | None, int]], start: list[int], raised: bool
) -> None:
    """Whether or not what is yielded is placed, and raises the shares along its path."""
    waiting = [
        light(f"{at:02}", name, priority=priority, deadline_seconds=deadline, bound=levels)
        for at, (name, priority, deadline, levels) in enumerate(drawn)
    ]
    steps = Steps(waiting, start, set(range(10)) if raised else set())
    found = steps.run(steps.ours)
    assert found == steps.run(steps.reference)
    assert sorted(found) == sorted(item.workload.uid for item in waiting)


@pytest.mark.parametrize("seed", (*range(40), 77, 272, 281))
def test_long_runs_of_level_queues_are_the_definition(seed: int) -> None:
    """Few of many are placed, so that queues stay level for long; some are late, and some would borrow."""
    chance = Random(seed)
    late, borrow, placed = (chance.choice([0.0, 0.05, 0.5]) for _ in range(3))
    waiting = [
        light(
            f"{at:02}",
            chance.choice(["a1", "a2", "b1", "b2", "c"]),
            priority=chance.randrange(3),
            eligible_seconds=float(chance.randrange(5)),
            deadline_seconds=50.0 if chance.random() < late else None,
            bound=chance.choice((1, 2)) if chance.random() < borrow else 0,
        )
        for at in range(60)
    ]
    start = [0] * 8 if chance.random() < 0.7 else [chance.randrange(2) for _ in range(8)]
    happens = {at for at in range(60) if chance.random() < placed * 0.2}
    tree = chance.choice([ORGS, WITH_STRICT])
    for told in (True, False):
        steps = Steps(waiting, start, happens, tree, told)
        assert steps.run(steps.ours) == steps.run(steps.reference)


@given(drawn=st.lists(st.sampled_from(["a1", "a2", "b1", "b2", "c"]), max_size=40), scale=st.integers(1, 1000))
def test_any_key_that_orders_as_shares_do_gives_the_same_order(drawn: list[str], scale: int) -> None:
    """Whole numbers in place of fractions."""
    waiting = [light(f"{at:02}", name) for at, name in enumerate(drawn)]
    shares = {name: Fraction(at % 3, 7) for at, name in enumerate(sorted(ORGS.queues))}
    keys = {name: int(share * 7 * scale) for name, share in shares.items()}
    expected = [item.subject for item in in_order(waiting, Tournament(shares.__getitem__, ORGS), NOW)]
    assert [item.subject for item in in_order(waiting, Tournament(keys.__getitem__, ORGS), NOW)] == expected
