"""Budget index: which disruption budgets cover a pod, looked up once for all pods of one namespace and the same labels.

Whoever may make budgets and pods in a namespace chooses how many of both there are, and every preemptor asks: so a pod
counts for a few budgets, those that allow least, and of those that no label of it names a few are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from model.budget import DisruptionBudget
from scheduler.core.snapshot.pod_queries import Pair, needed_pairs
from scheduler.core.snapshot.podclass import PodTraits

MOST_COVERING = 8
"""Kubernetes itself evicts no pod that more than one budget covers (pkg/registry/core/pod/storage/eviction.go)."""
MOST_ASKED = 64
"""Of budgets of one namespace whose selectors name no label with its value, or many; the rest covers all its pods."""
_REMEMBERED = 8192


class BudgetIndex:
    """Numbers are places in `budgets`."""

    def __init__(self, budgets: Sequence[DisruptionBudget]) -> None:
        self.watched = frozenset(budget.namespace for budget in budgets)
        self._budgets = budgets
        self._by_pair: dict[tuple[str, Pair], list[int]] = {}
        self._others: dict[str, list[int]] = {}
        self._known: dict[PodTraits, tuple[int, ...]] = {}
        for number in sorted(range(len(budgets)), key=lambda number: (budgets[number].allowed, number)):
            self._enter(number)

    def covering(self, pod_traits: PodTraits) -> tuple[int, ...]:
        """Ascending; of many those that allow least."""
        known = self._known.get(pod_traits)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = sorted(set(self._matching(pod_traits)), key=lambda number: (self._budgets[number].allowed, number))
            known = self._known[pod_traits] = tuple(sorted(found[:MOST_COVERING]))
        return known

    def _enter(self, number: int) -> None:
        """An empty selector covers nobody."""
        budget = self._budgets[number]
        if not budget.selector.requirements:
            return
        pairs = needed_pairs(budget.selector)
        if pairs is None:
            self._others.setdefault(budget.namespace, []).append(number)
        for pair in dict.fromkeys(pairs or ()):
            self._by_pair.setdefault((budget.namespace, pair), []).append(number)

    def _matching(self, pod_traits: PodTraits) -> Iterator[int]:
        """Those lists stand in the order of what is allowed."""
        labels, namespace = dict(pod_traits.labels), pod_traits.namespace
        others = self._others.get(namespace, [])
        for pair in pod_traits.labels:
            named = self._by_pair.get((namespace, pair), [])
            yield from self._first(named[:MOST_ASKED], labels)
            yield from named[MOST_ASKED : MOST_ASKED + 1]
        yield from self._first(others[:MOST_ASKED], labels)
        yield from others[MOST_ASKED : MOST_ASKED + 1]

    def _first(self, numbers: Sequence[int], labels: dict[str, str]) -> list[int]:
        """As many as count."""
        found: list[int] = []
        for number in numbers:
            if len(found) == MOST_COVERING:
                break
            if self._budgets[number].selector.matches(labels):
                found.append(number)
        return found


@lru_cache(maxsize=2)
def index_of(budgets: tuple[DisruptionBudget, ...]) -> BudgetIndex:
    """The same index for the same budgets, from one attempt to the next."""
    return BudgetIndex(budgets)
