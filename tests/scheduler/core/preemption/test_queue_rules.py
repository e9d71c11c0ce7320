"""What queues let a preemptor have: by what is due, or by shares where a strategy says so."""

from __future__ import annotations

import msgspec
import pytest
from preemption_builders import queue_rules

from model.queue import Queue
from scheduler.core.ledger.queue_book import add
from scheduler.core.preemption.queue_rules import QueueRules, Removed, joined
from scheduler.core.queues.policy import FairPreemption
from scheduler.core.queues.shares import ShareRules
from scheduler.core.queues.tree import tree_of
from scheduler.core.queues.turn_quota import TurnQuota

CPU = ("", "cpu")


def may_lose(rules: QueueRules, *losses: Removed) -> bool:
    """Whether queues may lose these, one after the other; the books are as before then."""
    before = [rules.quota.used(name, CPU) for name in ("", *rules.quota.tree.top_down)]
    with rules.losing() as books:
        found = all(books.lose(each) for each in losses)
    assert before == [rules.quota.used(name, CPU) for name in ("", *rules.quota.tree.top_down)]
    return found


def by_share(asks: int, *strategies: FairPreemption, reclaimable: bool = True) -> QueueRules:
    """Queues a and b without amounts of their own, of which b has 3 of 4 CPUs and each is due 2."""
    b = Queue("b")
    b = msgspec.structs.replace(b, preemption=msgspec.structs.replace(b.preemption, reclaimable=reclaimable))
    quota = TurnQuota(tree_of([Queue("a"), b]), ShareRules())
    quota.begin({CPU: 4000}, lambda: {"": {CPU: 4000}, "a": {CPU: 500}, "b": {CPU: 2000}})
    quota.charge("b", {CPU: 3000})
    quota.charge("a", {CPU: 1000})
    return QueueRules(quota, "a", {CPU: asks}, {}, (CPU,), strategies)


def test_amounts_are_joined() -> None:
    """By queue; neither side is changed."""
    one, other = {"a": {CPU: 1}}, {"a": {CPU: 2}, "b": {CPU: 3}}
    assert joined(one, other) == {"a": {CPU: 3}, "b": {CPU: 3}}
    assert one == {"a": {CPU: 1}}
    total = {CPU: 1}
    add(total, {CPU: 2, ("", "memory"): 3})
    assert total == {CPU: 3, ("", "memory"): 3}


def test_who_is_foreign() -> None:
    """Work of another queue; not what no queue governs, and nobody for a preemptor that none governs."""
    rules = queue_rules("p", {"p": 1, "q": 1}, used=0)
    assert [rules.foreign(name) for name in ("q", "p", "")] == [True, False, False]
    assert not queue_rules("", {"q": 1}, used=0).foreign("q")


def test_what_counts_as_gone_already() -> None:
    """Its own nomination, and pods that terminate, are asked for once."""
    rules = queue_rules("p", {"p": 4000, "q": 0}, used=4000)
    assert [each.room for each in rules.short({})] == [0]
    assert rules.short({"q": {CPU: 1000}}) == ()
    waiting = msgspec.structs.replace(rules, before={"q": {CPU: 1000}})
    assert waiting.short({}) == ()
    assert rules.short({})  # nothing was changed by asking


def test_grace() -> None:
    """Of the victim's queue; none for a queue that nobody wrote."""
    rules = queue_rules("p", {"p": 1, "q": 1}, used=0)
    assert (rules.grace_seconds("q"), rules.grace_seconds("none")) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("strategies", "asks", "victim", "allowed"),
    [
        ((), 500, 500, False),
        ((FairPreemption.FINAL_SHARE,), 500, 500, True),
        ((FairPreemption.FINAL_SHARE,), 1000, 1000, True),
        ((FairPreemption.FINAL_SHARE,), 1500, 1500, False),
        ((FairPreemption.INITIAL_SHARE,), 1500, 1500, True),
        ((FairPreemption.INITIAL_SHARE,), 2000, 500, False),
        ((FairPreemption.FINAL_SHARE, FairPreemption.INITIAL_SHARE), 1500, 1500, True),
    ],
)
def test_by_shares(strategies: tuple[FairPreemption, ...], asks: int, victim: int, allowed: bool) -> None:
    """a would have more than it is due; Kueue's two rules compare its share then with that of b after, or before."""
    rules = by_share(asks, *strategies)
    assert may_lose(rules, {"b": {CPU: victim}}) is allowed


def test_what_a_sibling_has_lost_counts_for_their_parent() -> None:
    """Two teams that have 1 CPU too much each, in an org that has 1 too much: one of them loses it, not both."""
    quota = TurnQuota(tree_of([Queue("a"), Queue("org"), Queue("x", "org"), Queue("y", "org")]), ShareRules())
    due = {"": 4000, "a": 1000, "org": 3000, "x": 1000, "y": 1000}
    quota.begin({CPU: 4000}, lambda: {name: {CPU: amount} for name, amount in due.items()})
    quota.charge("x", {CPU: 2000})
    quota.charge("y", {CPU: 2000})
    rules = QueueRules(quota, "a", {CPU: 1000}, {}, (CPU,))
    assert may_lose(rules, {"y": {CPU: 1000}})
    assert not may_lose(rules, {"x": {CPU: 1000}}, {"y": {CPU: 1000}})


def test_what_is_given_back_is_not_lost() -> None:
    """Of several queues' losses at once none is counted where one of them may not lose it."""
    rules = by_share(500, FairPreemption.FINAL_SHARE)
    with rules.losing() as books:
        assert not books.lose({"b": {CPU: 500}, "default": {CPU: 1}})
        assert rules.quota.used("b", CPU) == 3000
        assert books.lose({"b": {CPU: 500}}) and rules.quota.used("b", CPU) == 2500
        books.give_back({"b": {CPU: 500}})
        assert rules.quota.used("b", CPU) == 3000
        assert [each.room for each in books.lacking({})] == [0] and books.lacking({"b": {CPU: 500}}) == ()


def test_shares_take_nothing_from_who_says_no() -> None:
    """A queue that is not reclaimable, or that has no more than it is due."""
    assert by_share(500, FairPreemption.FINAL_SHARE, reclaimable=False).why_not("b")
    assert not may_lose(by_share(500, FairPreemption.FINAL_SHARE), {"b": {CPU: 1000}}, {"b": {CPU: 500}})


@pytest.mark.parametrize("used", [0, 500, 1500, 4000])
@pytest.mark.parametrize("asks", [500, 2500])
def test_queues_asked_all_at_once(used: int, asks: int) -> None:
    """As each by itself, the preemptor's own and those that nobody wrote among them."""
    rules = queue_rules("p", {"p": 2000, "q": 1000, "r": 0}, used=used, asks=asks)
    names = ["q", "p", "r", "", "default", "none"]
    assert rules.open_to_it(names) == [rules.foreign(name) and not rules.why_not(name) for name in names]


def test_what_is_taken_is_asked_of_nobody() -> None:
    """A queue loses it whether it may or not, until the block ends."""
    rules = queue_rules("p", {"p": 4000, "q": 4000}, used=1000)
    with rules.losing() as books:
        assert not books.lose({"q": {CPU: 1000}})
        books.take({"q": {CPU: 1000}})
        assert rules.quota.used("q", CPU) == 0
    assert rules.quota.used("q", CPU) == 1000
