"""Books from turn to turn: what is used stays, what there is and what is due are told anew."""

from __future__ import annotations

from model.queue import Queue, QuotaCell
from scheduler.core.queues.shares import ShareRules, Shares
from scheduler.core.queues.tree import tree_of
from scheduler.core.queues.turn_quota import TurnQuota

CPU = ("", "cpu")
TREE = tree_of([Queue("a", cells={CPU: QuotaCell(maximum=10)}), Queue("b")])


def test_shares_are_made_once_a_turn_and_only_when_asked() -> None:
    """Most turns reclaim nothing, and shares of hundreds of queues are not free."""
    made: list[int] = []

    def make() -> Shares:
        made.append(1)
        return {"": {CPU: 20}, "a": {CPU: 7}}

    quota = TurnQuota(TREE, ShareRules())
    quota.begin({CPU: 20}, make)
    assert quota.short("a", {CPU: 10}) == () and made == []
    assert (quota.share("a", CPU), quota.entitled("a", CPU), made) == (7, 7, [1])
    quota.begin({CPU: 20}, make)
    assert (quota.share("a", CPU), made) == (7, [1, 1])


def test_what_is_used_outlives_the_turn() -> None:
    """A smaller cluster leaves less room; nobody's use is forgotten."""
    quota = TurnQuota(TREE, ShareRules())
    quota.begin({CPU: 20}, dict)
    quota.charge("b", {CPU: 8})
    assert quota.dominant_share("b").value * 20 == 8
    quota.begin({CPU: 10}, dict)
    assert (quota.used("b", CPU), quota.headroom("a", CPU).amount) == (8, 2)
    assert quota.dominant_share("b").value * 10 == 8


def test_as_if_gone() -> None:
    """Within the block alone."""
    quota = TurnQuota(TREE, ShareRules())
    quota.begin({CPU: 10}, dict)
    quota.charge("b", {CPU: 8})
    with quota.as_if_gone({"b": {CPU: 5}}):
        assert quota.headroom("a", CPU).amount == 7
    assert quota.headroom("a", CPU).amount == 2
