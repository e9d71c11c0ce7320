"""Turn quota: the books of queues from turn to turn, while what is used changes pod by pod."""

from __future__ import annotations

from collections.abc import Callable, Set

from model.queue import Cell
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.shares import Amounts, ShareRules, Shares
from scheduler.core.queues.tree import QueueTree


class TurnQuota(Quota):
    """A Quota whose capacity is told each turn; shares are made where somebody asks for them, once a turn.

    `levels` is as `Reclaim` has it, `cells` as Quota has it.
    """

    def __init__(
        self, tree: QueueTree, rules: ShareRules, levels: int | None = None, cells: Set[Cell] | None = None
    ) -> None:
        self._make: Callable[[], Shares] = dict
        self._made: Shares | None = None
        super().__init__(tree, {}, {}, {}, rules)
        self.levels = levels
        self.cells = cells

    @property
    def shares(self) -> Shares:
        """The fair shares of this turn."""
        if self._made is None:
            self._made = self._make()
        return self._made

    @shares.setter
    def shares(self, made: Shares) -> None:
        self._made = made
        self._entitled = {}

    def begin(self, capacity: Amounts, make: Callable[[], Shares], shared: Amounts | None = None) -> None:
        """Another turn, with what there is now; `shared` as `renew` has it."""
        self._make, self._made = make, None
        self.renew(capacity, shared)
