"""Pod index: who is where, as far as other pods' terms ask: labels, the terms residents hold themselves, host ports.

Putting a pod writes one entry; a count by row is made when it is first asked for and catches up on the entries since.
So a cluster in which nobody has such terms pays for the entries alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import msgspec
import numpy as np

from model.selector import Selector
from scheduler.core.snapshot.class_registry import ClassRegistry
from scheduler.core.snapshot.pod_log import PodLog, PodLogEntries, kept, merged
from scheduler.core.snapshot.pod_queries import Labels, PodQuery, Pods, PodsWithTerm, ResidentTerm, TermKind
from scheduler.core.snapshot.podclass import PodTraits
from scheduler.core.snapshot.snapshot import Amounts

Objections: TypeAlias = tuple[tuple[ResidentTerm, str], ...]
_REMEMBERED = 2048
_SLACK = 8192
_FEW_TERMS = 32
"""Terms whose bearers are counted one by one, which keeps the counts; whoever makes pods chooses how many there are."""


class _Count(msgspec.Struct, eq=False):
    """`rows` counts the entries before `position`; written to only where `owned`."""

    rows: Amounts
    position: int = 0
    owned: bool = True


class PodIndex:
    """Residents of `size` rows."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._registry = ClassRegistry()
        self._log = PodLog()
        self._counts: dict[PodQuery, _Count] = {}
        self._population = 0
        self._compact_beyond = _SLACK
        self._total = _Count(np.zeros(0, np.int64))

    def put(self, pod_traits: PodTraits, row: int, count: int = 1) -> None:
        """`count` more pods with these traits are on the row."""
        self._log.extend([(self._registry.number(pod_traits), row, count)])
        self._grown(count)

    def remove(self, pod_traits: PodTraits, row: int, count: int = 1) -> None:
        """`count` pods with these traits left the row."""
        self.put(pod_traits, row, -count)

    def put_all(self, each_traits: Iterable[PodTraits], rows: Iterable[int], sign: int = 1) -> None:
        """One more pod for each of the traits and its row; with `sign` −1 one less."""
        numbers = map(self._registry.number, each_traits)
        entries = [(number, row, sign) for number, row in zip(numbers, rows, strict=True)]
        self._log.extend(entries)
        self._grown(sign * len(entries))

    def copy(self) -> PodIndex:
        """An independent index of the same residents; what both know already is shared until one of them changes."""
        other = PodIndex.__new__(PodIndex)
        other.size, other._registry, other._population = self.size, self._registry, self._population
        other._log = self._log.copy()
        self._total.owned = False
        other._total = _Count(self._total.rows, self._total.position, owned=False)
        other._compact_beyond = 2 * len(self._log) + _SLACK
        for count in self._counts.values():
            count.owned = False
        other._counts = {q: _Count(c.rows, c.position, owned=False) for q, c in self._counts.items()}
        return other

    def remap(self, new_row_of_old: Amounts, size: int) -> None:
        """Rows are numbered again, −1 for one that is gone with all its residents."""
        entries = self._log.since(0)
        moved = PodLogEntries(entries.numbers, new_row_of_old[entries.rows], entries.amounts)
        self._log.replace(kept(moved, moved.rows >= 0))
        self._population = int(self._log.since(0).amounts.sum())
        self.size = size
        self._counts.clear()
        self._total = _Count(np.zeros(0, np.int64))

    def count(self, query: PodQuery) -> Amounts:
        """By row, how many residents the question counts; not to be written to, and valid until the next change."""
        known = self._counts.get(query)
        if known is None:
            if len(self._counts) >= _REMEMBERED:
                self._counts.clear()
            known = self._counts[query] = _Count(np.zeros(self.size, np.int64))
        if known.position < len(self._log):
            self._catch_up(query, known)
        return known.rows

    def counts(
        self, selector: Selector | None, namespaces: frozenset[str] | None = None, *, staying: bool = False
    ) -> Amounts:
        """By row, how many residents in these namespaces (None: all) match; `staying`: without those that are going."""
        return self.count(Pods(selector, namespaces, staying))

    def objections(self, pod_traits: PodTraits) -> Objections:
        """The residents' anti-affinity terms that may concern such a pod: pods with the same ones are judged alike.

        With a term that picks namespaces by labels stands the pod's namespace: whether it is picked is found out later.
        """
        return tuple(
            (held, pod_traits.namespace if _by_labels(held) else "")
            for held in self._registry.terms_about(pod_traits)
            if held.kind is TermKind.ANTI and _may_see(held, pod_traits.namespace) and self._borne(held)
        )

    def held_about(
        self, pod_traits: PodTraits, kind: TermKind, namespaces: Mapping[str, Labels], keys: Collection[str]
    ) -> tuple[tuple[str, Amounts], ...]:
        """By topology key and row, the weights of the residents' terms of one kind that match such a pod, by bearers.

        A required term weighs 1, keys may come several times. `namespaces` are the labels of each namespace, `keys`
        the labels that nodes have: terms of others concern none.
        """
        terms = self._registry.terms_about(pod_traits)
        about = (held for held in terms if held.kind is kind and held.term.topology_key in keys)
        found = [held for held in about if _sees(held, pod_traits.namespace, namespaces) and self._borne(held)]
        if len(found) > _FEW_TERMS:
            return tuple(self._together(found))
        return tuple((held.term.topology_key, _weight(held) * self.count(PodsWithTerm(held))) for held in found)

    def _borne(self, held: ResidentTerm) -> bool:
        """Whether any resident holds the term."""
        totals = self._totals()
        return any(totals[number] > 0 for number in self._registry.bearers(held) if number < len(totals))

    def _totals(self) -> Amounts:
        """Residents by number of their PodTraits; not to be written to."""
        total, size = self._total, len(self._registry.known_traits)
        if total.position < len(self._log):
            if size > len(total.rows) or not total.owned:
                total.rows = np.append(total.rows, np.zeros(size - len(total.rows), np.int64))
                total.owned = True
            new = self._log.since(total.position)
            np.add.at(total.rows, new.numbers, new.amounts)
            total.position = len(self._log)
        return total.rows

    def _together(self, terms: Iterable[ResidentTerm]) -> Iterable[tuple[str, Amounts]]:
        """Of many terms one sum a key, in one pass over the log: a count for each of thousands would be dear."""
        by_key: dict[str, dict[int, int]] = {}
        for held in terms:
            weights = by_key.setdefault(held.term.topology_key, {})
            for number in self._registry.bearers(held):
                weights[number] = weights.get(number, 0) + _weight(held)
        entries = self._log.since(0)
        for key, weights in by_key.items():
            weight_of = np.zeros(len(self._registry.known_traits), np.int64)
            weight_of[list(weights)] = list(weights.values())
            each = entries.amounts * weight_of[entries.numbers]
            yield key, np.bincount(entries.rows, each, self.size).astype(np.int64)

    def _grown(self, count: int) -> None:
        self._population += count
        if len(self._log) > max(self._compact_beyond, 4 * self._population):
            self._compact()

    def _catch_up(self, query: PodQuery, known: _Count) -> None:
        mask = self._registry.mask(query)
        if not known.owned:
            known.rows, known.owned = known.rows.copy(), True
        late = self._log.fresh(known.position)
        if late is None:
            new = self._log.since(known.position)
            counted = kept(new, mask[new.numbers])
            known.rows += np.bincount(counted.rows, counted.amounts, self.size).astype(np.int64)
        else:
            for number, row, amount in late:
                if mask[number]:
                    known.rows[row] += amount
        known.position = len(self._log)

    def _compact(self) -> None:
        """Write the log again without what cancels out, a registry that is mostly history without whom nobody names."""
        for query, count in self._counts.items():
            if count.position < len(self._log):
                self._catch_up(query, count)
        entries = merged(self._log.since(0))
        named, numbers = np.unique(entries.numbers, return_inverse=True)
        if 2 * len(named) < len(self._registry.known_traits):
            old, self._registry = self._registry, ClassRegistry()
            again = np.array([self._registry.number(old.known_traits[number]) for number in named], np.int64)
            entries = PodLogEntries(again[numbers], entries.rows, entries.amounts)
        self._log.replace(entries)
        self._total = _Count(np.zeros(0, np.int64))
        self._compact_beyond = 2 * len(self._log) + _SLACK
        for count in self._counts.values():
            count.position = len(self._log)


def _weight(held: ResidentTerm) -> int:
    return held.weight if held.kind is TermKind.PREFERRED else 1


def _by_labels(held: ResidentTerm) -> bool:
    selector = held.term.namespace_selector
    return selector is not None and bool(selector.requirements)


def _may_see(held: ResidentTerm, namespace: str) -> bool:
    return _by_labels(held) or _sees(held, namespace, {})


def _sees(held: ResidentTerm, namespace: str, namespaces: Mapping[str, Labels]) -> bool:
    """Whether a resident's term looks at pods of the namespace; one that is not known has no labels."""
    term = held.term
    if namespace in term.listed or namespace == held.namespace:
        return True
    return term.namespace_selector is not None and term.namespace_selector.matches(namespaces.get(namespace, {}))
