"""Queue rules of preemption: whose work may be taken back for whom, and how much of it.

Inside a queue priority decides, and so it does where no queue governs the preemptor or the victim. Between two queues
work is taken back whatever its priority, where the preemptor's queue stays within what it is entitled to and the
victim's has more than that (Volcano's reclaim, Kueue's reclaimWithinCohort: Any); never so much that a queue falls
under its guarantee. Of online pods from koord-prod up only lower priority is, unless the policy says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction

import msgspec

from model.queue import ROOT_QUEUE, Cell, Queue, QueuePreemption, VictimPolicy
from scheduler.core.ledger.queue_book import add
from scheduler.core.queues.borrowed_share import exact_share
from scheduler.core.queues.headroom import Quota, Shortage
from scheduler.core.queues.policy import FairPreemption
from scheduler.core.queues.reclaimable import Reclaim

Removed = Mapping[str, Mapping[Cell, int]]
"""By queue, what its work no longer takes."""


class Questions(msgspec.Struct):
    """How many losses were asked about, by which attempts are counted: whoever makes victims may make them small."""

    asked: int = 0

    def take(self) -> int:
        """Those since the last call."""
        asked, self.asked = self.asked, 0
        return asked


class QueueRules(msgspec.Struct, frozen=True, eq=False):
    """For one preemptor: the queue that governs it, and what it asks for; `before` is what counts as gone already, its
    own nomination and the pods that are terminating. `contested` are the cells that its queue is short of, all it asks
    for where nodes are. `reclaims_prod`: online pods from koord-prod up are taken back whatever their priority, too.
    """

    quota: Quota
    own: str
    asks: Mapping[Cell, int]
    before: Removed
    contested: tuple[Cell, ...]
    strategies: tuple[FairPreemption, ...] = ()
    reclaims_prod: bool = False
    words: QueuePreemption | None = None
    questions: Questions = msgspec.field(default_factory=Questions)

    @property
    def governed(self) -> bool:
        """Whether any queue governs the preemptor."""
        return self.own != ROOT_QUEUE

    def foreign(self, queue: str) -> bool:
        """Whether work of that queue may be taken back at most, whatever its priority."""
        return self.governed and queue not in (ROOT_QUEUE, self.own)

    def grace_seconds(self, queue: str) -> float:
        """How long a victim of the queue that asks to be told has at least."""
        known = self.quota.tree.queues.get(queue)
        return (known.preemption.grace_seconds or 0.0) if known is not None else 0.0

    def short(self, removed: Removed) -> tuple[Shortage, ...]:
        """What its queue still lacks once this is gone, too."""
        return self.quota.short(self.own, self.asks, joined(self.before, removed)) if self.governed else ()

    def why_not(self, victim_queue: str) -> str:
        """Why nothing of another queue may be taken back; empty where something may."""
        with self.quota.as_if_gone(self.before):
            return self._why_not(victim_queue, self.quota.reclaim(self.own, self.asks, self.contested))

    def open_to_it(self, queues: Iterable[str]) -> list[bool]:
        """Of each queue, whether it is another from which something may be taken back."""
        with self.quota.as_if_gone(self.before):
            asked = self.quota.reclaim(self.own, self.asks, self.contested)
            names = tuple(queues)
            pairs = zip(names, self._over(names), strict=True)
            return [over and self.foreign(name) and not self._why_not(name, asked) for name, over in pairs]

    def _over(self, names: Sequence[str]) -> Sequence[bool]:
        """Whether each queue may have anything to lose: most have no more than they are entitled to."""
        if self._may_borrow:
            return [True for _ in names]
        by_cell = [self.quota.all_over(names, cell) for cell in self.contested]
        return by_cell[0] if len(by_cell) == 1 else [any(each) for each in zip(*by_cell, strict=True)]

    def _why_not(self, victim_queue: str, asked: Reclaim) -> str:
        if why := self._barred(victim_queue):
            return why
        why = asked.why_not(victim_queue)
        return "" if why and (self._to_borrow(victim_queue) or self._by_share(victim_queue, {})) else why

    def to_borrow(self, victim_queue: str) -> bool:
        """Whether what it would take from that queue is not its own: such work goes by priority alone."""
        if not self._may_borrow:
            return False
        with self.quota.as_if_gone(self.before):
            why = self.quota.may_reclaim(self.own, self.asks, victim_queue, self.contested)
            return bool(why) and self._to_borrow(victim_queue) and not self._by_share(victim_queue, {})

    def _barred(self, victim_queue: str) -> str:
        """Queues that count by flavour take back within their cohort alone, and as far as they say."""
        tree = self.quota.tree
        theirs = tree.queues.get(victim_queue)
        if self.words is None and (theirs is None or not theirs.flavor_groups):
            return ""
        if tree.path(self.own)[len(tree.apart(self.own, victim_queue)[0])] == ROOT_QUEUE:
            return f"queue {self.own} and queue {victim_queue} are in no cohort together"
        if self.words is not None and self.words.reclaim is VictimPolicy.NEVER:
            return f"queue {self.own} takes nothing back from its cohort"
        return ""

    @property
    def _may_borrow(self) -> bool:
        """Whether its queue lets it evict in order to borrow at all."""
        return self.words is not None and self.words.borrowing is not VictimPolicy.NEVER

    def _to_borrow(self, victim_queue: str) -> bool:
        """Whether its queue lets it evict in order to borrow, and that one borrows as well."""
        if not self._may_borrow:
            return False
        theirs = self.quota.tree.apart(self.own, victim_queue)[1]
        return any(all(self.quota.over(node, cell) for node in theirs) for cell in self.contested)

    @contextmanager
    def losing(self) -> Iterator[Losses]:
        """Books within the block, in which queues lose one victim after the other; each costs what it has, however many
        went before.
        """
        losses = Losses(self)
        with self.quota.as_if_gone(self.before):
            try:
                yield losses
            finally:
                losses.undo()

    def lawful(self, queue: str, amounts: Mapping[Cell, int]) -> bool:
        """Whether a queue may lose this, by the books as they stand."""
        if not self.quota.may_lose(queue, amounts, self.own, self.contested):
            return False
        entitled = not self.quota.may_reclaim(self.own, self.asks, queue, self.contested)
        return entitled or self._to_borrow(queue) or self._by_share(queue, amounts)

    def _by_share(self, victim_queue: str, amounts: Mapping[Cell, int]) -> bool:
        """Whether a queue that has more than it is entitled to may take these amounts from one that has still more."""
        if not self.strategies:
            return False
        ours, theirs = self.quota.tree.apart(self.own, victim_queue)
        rules = self.quota.tree.queues.get(victim_queue, Queue()).preemption
        open_to = rules.reclaimable and (not rules.preemptors or not {*ours}.isdisjoint(rules.preemptors))
        if not ours or not theirs or not open_to:
            return False
        if not any(self.quota.over(victim_queue, cell) for cell in self.contested):
            return False
        before = self._share(theirs[-1])
        with self.quota.as_if_gone({self.own: {cell: -amount for cell, amount in self.asks.items()}}):
            own = self._share(ours[-1])
        with self.quota.as_if_gone({victim_queue: amounts}):
            final = self._share(theirs[-1])
        return any(own <= final if each is FairPreemption.FINAL_SHARE else own < before for each in self.strategies)

    def _share(self, node: str) -> Fraction:
        """Of queues that say themselves whom they may evict (Kueue's) what they borrow, of others all that they use."""
        if self.words is not None:
            return exact_share(self.quota, node)
        return self.quota.dominant_share(node).value / max(1, self.quota.tree.weight(node))


class Losses:
    """What queues have lost so far, besides what counts as gone already."""

    def __init__(self, rules: QueueRules) -> None:
        self._rules = rules
        self._lost: dict[str, dict[Cell, int]] = {}

    def lose(self, amounts: Removed) -> bool:
        """Let queues lose this if each may, one after the other; else nothing changes."""
        done: list[str] = []
        self._rules.questions.asked += len(amounts)
        for queue, own in amounts.items():
            if not self._rules.lawful(queue, own):
                for each in done:
                    self._count(each, amounts[each], -1)
                return False
            self._count(queue, own, 1)
            done.append(queue)
        return True

    def take(self, amounts: Removed) -> None:
        """They lose this, whether they may or not."""
        for queue, own in amounts.items():
            self._count(queue, own, 1)

    def give_back(self, amounts: Removed) -> None:
        """They have not lost this after all."""
        for queue, own in amounts.items():
            self._count(queue, own, -1)

    def lacking(self, besides: Removed) -> tuple[Shortage, ...]:
        """What the preemptor's queue still lacks once this is gone, too."""
        rules = self._rules
        return rules.quota.short(rules.own, rules.asks, besides) if rules.governed else ()

    def undo(self) -> None:
        """The books are as they were."""
        for queue, amounts in self._lost.items():
            self._rules.quota.charge(queue, amounts)
        self._lost.clear()

    def _count(self, queue: str, amounts: Mapping[Cell, int], sign: int) -> None:
        self._rules.quota.charge(queue, amounts, -sign)
        known = self._lost.setdefault(queue, {})
        for cell, amount in amounts.items():
            known[cell] = known.get(cell, 0) + sign * amount


def joined(one: Removed, other: Removed) -> dict[str, dict[Cell, int]]:
    """Both together."""
    total = {queue: dict(amounts) for queue, amounts in one.items()}
    for queue, amounts in other.items():
        add(total.setdefault(queue, {}), amounts)
    return total
