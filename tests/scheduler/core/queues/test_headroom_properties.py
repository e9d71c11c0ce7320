"""What no tree and no use may lead to; headroom against the definitions, recursively, without tables."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from queue_builders import CPU, books, queue

from model.queue import ROOT_QUEUE, Queue, QuotaCell
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.reclaimable import over_in
from scheduler.core.queues.shares import PLAIN_RULES, QuotaMode, ShareRules, said
from scheduler.core.queues.tree import QueueTree

PARENTS = {"A": "", "a": "A", "b": "A", "B": "", "c": "B", "D": "B", "d": "D", "e": "D", "f": ""}
LEAVES = ("a", "b", "c", "d", "e", "f")
amounts = st.integers(0, 12)
maybe = st.none() | amounts
quotas = st.builds(QuotaCell, amounts, maybe, maybe, maybe, maybe)
queues = st.fixed_dictionaries({name: st.tuples(st.integers(1, 3), st.none() | quotas) for name in PARENTS}).map(
    lambda drawn: [queue(name, PARENTS[name], weight, cpu=quota) for name, (weight, quota) in drawn.items()]
)
uses = st.dictionaries(st.sampled_from((*LEAVES, "D", "gone")), amounts)
rules = st.sampled_from([PLAIN_RULES, ShareRules(mode=QuotaMode.PROPORTION)])
leaves = st.sampled_from(LEAVES)


class Definitions:
    """Room and what is gone, as the specification says them."""

    def __init__(self, tree: QueueTree, capacity: int, own: Mapping[str, int], by: ShareRules) -> None:
        self.tree, self.capacity, self.own, self.by = tree, capacity, own, by

    def children(self, node: str) -> list[str]:
        unknown = [name for name in self.own if name not in self.tree.queues and name != ROOT_QUEUE]
        return [*self.tree.children.get(node, ()), *(unknown if node == ROOT_QUEUE else ())]

    def used(self, node: str) -> int:
        return self.own.get(node, 0) + sum(self.used(child) for child in self.children(node))

    def wanted(self, node: str) -> int:
        """What it would keep."""
        quota = said(self.tree, node, CPU)
        amount = max(self.by.kept(quota), sum(map(self.wanted, self.tree.children.get(node, ()))))
        return amount if quota.maximum is None else min(amount, quota.maximum)

    def kept(self, node: str) -> int:
        """That, or its part of what the queue above it keeps, or of all there is, where that is less than all want."""
        if node not in self.tree.queues:
            return 0
        parent = self.tree.parent(node)
        most = self.capacity if parent == ROOT_QUEUE else self.kept(parent)
        together = sum(map(self.wanted, self.tree.children[parent]))
        return self.wanted(node) if together <= most else self.wanted(node) * most // together

    def gone(self, node: str) -> int:
        quota = said(self.tree, node, CPU)
        inside = max(self.kept(node), self.own.get(node, 0) + sum(map(self.gone, self.children(node))))
        return max(self.used(node), inside if quota.maximum is None else min(inside, quota.maximum))

    def room(self, node: str) -> int:
        if node == ROOT_QUEUE:
            return self.capacity
        parent = self.tree.parent(node)
        siblings = [name for name in self.children(parent) if name != node]
        left = self.room(parent) - self.own.get(parent, 0) - sum(map(self.gone, siblings))
        ceiling = self.by.ceiling(said(self.tree, node, CPU))
        return left if ceiling is None else min(left, ceiling)

    def fits(self, leaf: str, asked: int) -> bool:
        """By trying: everything on its path stays within its room."""
        after = Definitions(self.tree, self.capacity, {**self.own, leaf: self.own.get(leaf, 0) + asked}, self.by)
        return all(after.used(node) <= after.room(node) for node in self.tree.path(leaf))


guaranteed = st.fixed_dictionaries(dict.fromkeys(LEAVES, amounts))


@given(own=guaranteed, capacity=st.integers(0, 40))
def test_nothing_stands_idle_while_all_ask(own: dict[str, int], capacity: int) -> None:
    """Whatever is guaranteed, and be it more than there is."""
    tree = [queue(name, parent, cpu=QuotaCell(own.get(name, 0))) for name, parent in PARENTS.items()]
    quota = books(tree, capacity)
    while fitting := [name for name in LEAVES if not quota.short(name, {CPU: 1})]:
        for name in fitting:
            if not quota.short(name, {CPU: 1}):
                quota.charge(name, {CPU: 1})
    assert quota.used(ROOT_QUEUE, CPU) == capacity


@given(queues=queues, capacity=st.integers(0, 60), own=uses, leaf=leaves, by=rules)
def test_headroom_is_what_the_definitions_say(
    queues: list[Queue], capacity: int, own: dict[str, int], leaf: str, by: ShareRules
) -> None:
    """So much fits, and one more does not."""
    quota = books(queues, capacity, own, rules=by)
    definitions = Definitions(quota.tree, capacity, own, by)
    found = quota.headroom(leaf, CPU).amount
    assert found is not None
    assert found == min(definitions.room(node) - definitions.used(node) for node in quota.tree.path(leaf))
    tried = [asked for asked in range(70) if definitions.fits(leaf, asked)]
    assert max(tried, default=-1) == max(found, -1)
    assert tried == list(range(len(tried)))


steps = st.lists(st.tuples(leaves, st.integers(1, 6), st.integers(1, 20)), max_size=8)


@given(queues=queues, capacity=st.integers(0, 60), own=uses, steps=steps, by=rules)
def test_what_fits_after_any_steps_is_what_the_definitions_say(
    queues: list[Queue], capacity: int, own: dict[str, int], steps: list[tuple[str, int, int]], by: ShareRules
) -> None:
    """Whatever was charged since room was found, and asked meanwhile."""
    quota = books(queues, capacity, own, rules=by)
    for name, amount, asked in steps:
        definitions = Definitions(quota.tree, capacity, own, by)
        assert quota.fits(name, {CPU: asked}) is definitions.fits(name, asked)
        quota.charge(name, {CPU: amount})
        own = {**own, name: own.get(name, 0) + amount}
    after = Definitions(quota.tree, capacity, own, by)
    assert {name: quota.held(name, CPU) for name in PARENTS} == {name: after.gone(name) for name in PARENTS}


@given(queues=queues, capacity=st.integers(0, 60), own=uses, leaf=leaves, asked=st.integers(1, 20), by=rules)
def test_what_is_short_and_where(
    queues: list[Queue], capacity: int, own: dict[str, int], leaf: str, asked: int, by: ShareRules
) -> None:
    """Short exactly where it does not fit; what is potentially short is short at any moment."""
    quota = books(queues, capacity, own, rules=by)
    short = quota.short(leaf, {CPU: asked})
    assert (not short) == Definitions(quota.tree, capacity, own, by).fits(leaf, asked)
    for shortage in short:
        assert shortage.node in quota.tree.path(leaf)
        assert shortage.room < shortage.asked == asked
    potential = quota.potential_short(leaf, {CPU: asked})
    assert (not potential) == Definitions(quota.tree, capacity, {}, by).fits(leaf, asked)
    assert short or not potential


@given(queues=queues, capacity=st.integers(0, 60), own=uses, victims=uses, leaf=leaves)
def test_without_victims_is_as_if_they_had_never_been(
    queues: list[Queue], capacity: int, own: dict[str, int], victims: dict[str, int], leaf: str
) -> None:
    gone = {name: min(amount, own.get(name, 0)) for name, amount in victims.items()}
    quota = books(queues, capacity, own)
    short = quota.short(leaf, {CPU: 5}, {name: {CPU: amount} for name, amount in gone.items()})
    left = {name: amount - gone.get(name, 0) for name, amount in own.items()}
    assert short == books(queues, capacity, left).short(leaf, {CPU: 5})
    assert quota.short(leaf, {CPU: 5}) == books(queues, capacity, own).short(leaf, {CPU: 5})


@given(queues=queues, capacity=st.integers(0, 60), own=uses, pending=uses)
def test_what_is_borrowed_is_what_is_lent(
    queues: list[Queue], capacity: int, own: dict[str, int], pending: dict[str, int]
) -> None:
    """Exactly, and a leaf's loans are those of its standing."""
    quota = books(queues, capacity, own, pending)
    loans = quota.lending(CPU)
    assert sum(loans.borrowed.values()) == sum(loans.lent.values())
    for leaf in LEAVES:
        standing = quota.standing(leaf)[CPU]
        assert standing.borrowed == loans.borrowed.get(leaf, 0)
        assert standing.lent == loans.lent.get(leaf, 0)


@given(
    queues=queues, capacity=st.integers(0, 60), own=uses, pending=uses, leaf=leaves, victim=leaves, v=st.integers(1, 9)
)
def test_who_takes_and_who_loses_never_disagree(
    queues: list[Queue], capacity: int, own: dict[str, int], pending: dict[str, int], leaf: str, victim: str, v: int
) -> None:
    """Whoever may be reclaimed from is over and loses a unit at least; whoever takes is not over afterwards."""
    quota = books(queues, capacity, own, pending)
    asked = {CPU: v}
    allowed = quota.may_reclaim(leaf, asked, victim) == ""
    ours, theirs = quota.tree.apart(leaf, victim)
    if not allowed or not quota.used(victim, CPU):  # what is kept idle is nobody's to take, and no victim
        return
    assert over_in(quota, theirs, (CPU,)) == (CPU,)
    assert not any(quota.over(node, CPU) for node in ours)
    assert quota.may_lose(victim, {CPU: 1}, leaf) or _held_by_guarantee(quota, theirs)
    quota.charge(victim, asked, -1)
    quota.charge(leaf, asked)
    assert not any(quota.over(node, CPU) for node in ours)
    assert quota.may_reclaim(victim, asked, leaf) != ""
    assert not quota.may_lose(leaf, asked, victim)


def _held_by_guarantee(quota: Quota, nodes: tuple[str, ...]) -> bool:
    """More is guaranteed than there is."""
    return any(quota.held(node, CPU) <= quota.guaranteed(node, CPU) for node in nodes)
