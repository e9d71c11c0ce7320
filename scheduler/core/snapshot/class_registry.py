"""The registry of all PodTraits ever seen: each gets a number, and whom a question counts is found out once for each.

It only grows, so that pod indexes and their copies share one; an index starts a new one when most of it is history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from scheduler.core.snapshot.pod_queries import (
    Labels,
    Pair,
    PodQuery,
    Pods,
    PodsOfAll,
    PodsWithTerm,
    PortUsers,
    ResidentTerm,
    held_by,
    needed_pairs,
)
from scheduler.core.snapshot.podclass import PodTraits
from scheduler.core.snapshot.snapshot import Mask

_REMEMBERED = 4096
_MOST_SPACES = 64
_MOST_ENTRIES = 16
"""A term whose namespaces and labels are more when multiplied stands under its namespaces alone, and beyond
`_MOST_SPACES` of these under none: its author chooses both numbers.
"""
_ANYWHERE = ""
"""The name of no namespace: for terms that pick theirs by labels."""


class ClassRegistry:
    """Numbers are consecutive from 0, in the order in which PodTraits were first seen."""

    def __init__(self) -> None:
        self.known_traits: list[PodTraits] = []
        self._numbers: dict[PodTraits, int] = {}
        self._by_pair: dict[Pair, list[int]] = {}
        self._indexed = 0
        self._bearers: dict[ResidentTerm, list[int]] = {}
        self._with_ports: list[int] = []
        self._masks: dict[PodQuery, Mask] = {}
        self._terms_by_pair: dict[tuple[str, Pair], list[ResidentTerm]] = {}
        self._other_terms: dict[str, list[ResidentTerm]] = {}
        self._about: dict[PodTraits, tuple[int, tuple[ResidentTerm, ...]]] = {}

    def number(self, pod_traits: PodTraits) -> int:
        """The number of a pod's traits, a new one where they were not seen before."""
        known = self._numbers.get(pod_traits)
        return self._enter(pod_traits) if known is None else known

    def mask(self, query: PodQuery) -> Mask:
        """By number, whether the question counts such pods."""
        known = self._masks.get(query)
        seen = 0 if known is None else len(known)
        if known is not None and seen == len(self.known_traits):
            return known
        if len(self._masks) >= _REMEMBERED:
            self._masks.clear()
        mask = np.zeros(len(self.known_traits), bool)
        if known is not None:
            mask[:seen] = known
        mask[self._counted(query, seen)] = True
        self._masks[query] = mask
        return mask

    def terms_about(self, pod_traits: PodTraits) -> tuple[ResidentTerm, ...]:
        """Terms of anyone in the registry whose selector matches such a pod, and that may see its namespace.

        One that picks namespaces by labels may see any: whether it does is found out later.
        """
        if not self._bearers:
            return ()
        known = self._about.get(pod_traits)
        if known is not None and known[0] == len(self._bearers):
            return known[1]
        if len(self._about) >= _REMEMBERED:
            self._about.clear()
        labels = dict(pod_traits.labels)
        likely = dict.fromkeys(
            held for space in (_ANYWHERE, pod_traits.namespace) for held in self._likely_terms(space, pod_traits)
        )
        found = tuple(h for h in likely if h.term.selector is not None and h.term.selector.matches(labels))
        self._about[pod_traits] = (len(self._bearers), found)
        return found

    def bearers(self, held: ResidentTerm) -> Sequence[int]:
        """Numbers of those that hold the term, ascending."""
        return self._bearers.get(held, ())

    def _enter(self, pod_traits: PodTraits) -> int:
        number = self._numbers[pod_traits] = len(self.known_traits)
        self.known_traits.append(pod_traits)
        if pod_traits.ports:
            self._with_ports.append(number)
        for held in dict.fromkeys(held_by(pod_traits)):
            if held not in self._bearers:
                self._bearers[held] = []
                self._index(held)
            self._bearers[held].append(number)
        return number

    def _index(self, held: ResidentTerm) -> None:
        pairs, spaces = needed_pairs(held.term.selector), _spaces(held)
        if pairs is None or (len(spaces) > 1 and len(spaces) * len(pairs) > _MOST_ENTRIES):
            for space in spaces:
                self._other_terms.setdefault(space, []).append(held)
            return
        for space in spaces:
            for pair in dict.fromkeys(pairs):
                self._terms_by_pair.setdefault((space, pair), []).append(held)

    def _likely_terms(self, space: str, pod_traits: PodTraits) -> Iterator[ResidentTerm]:
        """Terms of a space among which all are that match such a pod."""
        yield from self._other_terms.get(space, ())
        for pair in pod_traits.labels:
            yield from self._terms_by_pair.get((space, pair), ())

    def _counted(self, query: PodQuery, seen: int) -> Sequence[int]:
        """Numbers from `seen` on that the question counts."""
        likely = self._likely(query)
        if isinstance(query, PodsWithTerm):
            return likely[bisect_left(likely, seen) :]
        return [n for n in likely[bisect_left(likely, seen) :] if query.holds(self.known_traits[n], self._labels(n))]

    def _likely(self, query: PodQuery) -> Sequence[int]:
        """Ascending numbers among which all are that the question counts."""
        match query:
            case PodsWithTerm(held):
                return self._bearers.get(held, [])
            case PortUsers():
                return self._with_ports
            case PodsOfAll(each):
                return min((self._likely(pods) for pods in each), key=len)
            case Pods(selector):
                pairs = needed_pairs(selector)
                return range(len(self.known_traits)) if pairs is None else self._with_any(pairs)

    def _with_any(self, pairs: Iterable[Pair]) -> list[int]:
        self._index_labels()
        lists = [self._by_pair[pair] for pair in dict.fromkeys(pairs) if pair in self._by_pair]
        return lists[0] if len(lists) == 1 else sorted({number for numbers in lists for number in numbers})

    def _index_labels(self) -> None:
        """Only when somebody asks: most clusters never do."""
        by_pair = self._by_pair
        for number in range(self._indexed, len(self.known_traits)):
            for pair in self.known_traits[number].labels:
                if pair in by_pair:
                    by_pair[pair].append(number)
                else:
                    by_pair[pair] = [number]
        self._indexed = len(self.known_traits)

    def _labels(self, number: int) -> Labels:
        return dict(self.known_traits[number].labels)


def _spaces(held: ResidentTerm) -> Collection[str]:
    """Where a term is looked up: thousands of one namespace must not cost the pods of all others."""
    if held.term.namespace_selector is not None or len(held.term.namespaces) > _MOST_SPACES:
        return (_ANYWHERE,)
    return dict.fromkeys((*held.term.namespaces, *((held.namespace,) if held.namespace else ())))
