"""The tournament against its definition, and what asking for more than is needed brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from order_builders import ORGS, drf, light
from queue_builders import CPU, MEMORY, books, queue

from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.order import Ranking, Tournament, in_order
from scheduler.core.queues.tree import QueueTree

NOW = 100.0
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


def reference(
    waiting: list[Candidate],
    tree: QueueTree,
    share_of: Callable[[str], Fraction],
    borrows: Callable[[str, Candidate], bool],
) -> Iterator[Candidate]:
    """By the definition: at each step compare all children of each queue, from the root down."""
    left, ranking = list(waiting), Ranking(NOW)

    def head(node: str) -> Candidate | None:
        below = [found for child in tree.children.get(node, ()) if (found := head(child))]
        own = [each for each in left if each.workload.queue == node]
        below += [min(own, key=ranking.within_queue)] if own else []
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
        st.sampled_from([None, 50.0]),
        st.booleans(),
    ),
    max_size=10,
)


@given(drawn=jobs, start=st.lists(st.integers(0, 4), min_size=8, max_size=8), raised=st.booleans())
def test_the_tournament_is_the_definition(
    drawn: list[tuple[str, int, float | None, bool]], start: list[int], raised: bool
) -> None:
    """Whether or not what is yielded is placed, and raises the shares along its path."""
    waiting = [
        light(f"{at:02}", name, priority=priority, deadline_seconds=deadline, bound=int(borrows))
        for at, (name, priority, deadline, borrows) in enumerate(drawn)
    ]

    def run(way: Callable[..., Iterator[Candidate]]) -> list[str]:
        shares = {name: Fraction(share, 7) for name, share in zip(sorted(ORGS.queues), start, strict=True)}
        seen = []
        for item in way(shares.__getitem__, lambda name, item: len(name) > 1 and item.workload.bound > 0):
            seen.append(item.workload.uid)
            for node in ORGS.path(item.workload.queue)[:-1] if raised else ():
                shares[node] += Fraction(1, 7)
        return seen

    found = run(lambda share_of, borrows: in_order(waiting, Tournament(share_of, ORGS, borrows), NOW))
    assert found == run(lambda share_of, borrows: reference(waiting, ORGS, share_of, borrows))
    assert sorted(found) == sorted(item.workload.uid for item in waiting)
