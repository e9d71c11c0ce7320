"""Keys order nodes exactly as their weighted dominant shares do; what is kept is forgotten when it changes."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from queue_builders import CPU, GPU, MEMORY, books, queue

from model.queue import Cell
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.tree import tree_of

NAMES = ("A", "a", "b", "c")
OTHER_GPU: Cell = ("h100", GPU[1])
CELLS = (CPU, MEMORY, GPU, OTHER_GPU)
amounts = st.integers(0, 2**50) | st.integers(0, 9)
totals = st.dictionaries(st.sampled_from(CELLS), amounts)
charges = st.lists(
    st.tuples(st.sampled_from(("a", "b", "c", "gone")), st.dictionaries(st.sampled_from(CELLS), amounts)), max_size=6
)


def quota_of(weights: tuple[int, int, int, int], capacity: dict[Cell, int]) -> Quota:
    """`a` and `b` are below `A`."""
    parents = {"A": "", "a": "A", "b": "A", "c": ""}
    return books([queue(name, parents[name], weight) for name, weight in zip(NAMES, weights, strict=True)], capacity)


def weighted(quota: Quota, name: str) -> Fraction:
    """By the definition: the largest share of a resource, by weight."""
    used: dict[str, int] = {}
    there: dict[str, int] = {}
    for cell in CELLS:
        used[cell[1]] = used.get(cell[1], 0) + quota.used(name, cell)
        there[cell[1]] = there.get(cell[1], 0) + quota.capacity.get(cell, 0)
    shares = (Fraction(used[each], there[each]) for each in used if there[each])
    return max(shares, default=Fraction(0)) / quota.tree.weight(name)


@given(weights=st.tuples(*[st.integers(1, 65_535)] * 4), capacity=totals, later=totals, steps=charges)
def test_keys_are_in_the_order_of_shares(
    weights: tuple[int, int, int, int],
    capacity: dict[Cell, int],
    later: dict[Cell, int],
    steps: list[tuple[str, dict[Cell, int]]],
) -> None:
    """Equal where these are equal, after each charge and with another capacity."""
    quota = quota_of(weights, capacity)

    def check() -> None:
        shares = [(weighted(quota, name), quota.share_key(name)) for name in (*NAMES, "gone")]
        for share, key in shares:
            assert [share < other for other, _ in shares] == [key < other for _, other in shares]
            assert [share == other for other, _ in shares] == [key == other for _, other in shares]
        found = [quota.dominant_share(name).value / quota.tree.weight(name) for name in (*NAMES, "gone")]
        assert found == [share for share, _ in shares]

    check()
    for name, asked in steps:
        quota.charge(name, asked)
        check()
    quota.renew(later)
    check()


def test_shares_that_differ_in_the_last_unit() -> None:
    """Neighbours: (n − 1) / n and n / (n + 1) with n of the size of a cluster's bytes, by large weights."""
    size = 2**50
    quota = quota_of((1, 65_535, 65_535, 1), {MEMORY: size, ("x", "other"): size + 1})
    quota.charge("a", {MEMORY: size - 1})
    quota.charge("b", {("x", "other"): size})
    assert quota.share_key("a") < quota.share_key("b")


def test_the_revision_is_another_after_each_change() -> None:
    """Whoever was told that nothing has changed need not look."""
    quota = quota_of((1, 1, 1, 1), {CPU: 10})
    seen = [quota.revision]
    quota.charge("a", {CPU: 1})
    seen.append(quota.revision)
    with quota.as_if_gone({"a": {CPU: 1}}):
        seen.append(quota.revision)
    assert quota.revision == seen[-2]  # the books are as they were
    quota.charge("a", {CPU: 1})
    seen.append(quota.revision)
    quota.renew({CPU: 9})
    seen.append(quota.revision)
    assert len(set(seen)) == len(seen)


def test_another_measure_is_kept_until_the_path_is_charged() -> None:
    """As use over time, which costs more to ask for."""
    asked: list[str] = []

    def measure(node: str) -> Fraction:
        asked.append(node)
        return Fraction(len(asked))

    quota = Quota(tree_of([queue("a"), queue("b")]), {CPU: 10}, {"a": {CPU: 1}, "": {CPU: 1}}, {})
    quota.dominance.by(measure)
    assert [quota.share_key(name) for name in ("a", "b", "a")] == [1, 2, 1]
    quota.charge("a", {CPU: 1})
    assert [quota.share_key(name) for name in ("a", "b")] == [3, 2]


def test_a_copy_of_a_copy_keeps_what_shares_are_of() -> None:
    """Not the capacity, where that is more."""
    quota = quota_of((1, 1, 1, 1), {CPU: 16})
    quota.charge("c", {CPU: 4})
    quota.renew({CPU: 16}, {CPU: 8})
    once = quota.copy()
    assert once.copy().dominance.share("c") == once.dominance.share("c") == quota.dominance.share("c")
