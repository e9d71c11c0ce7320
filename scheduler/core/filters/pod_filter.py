"""Questions to the filters about other pods, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from model.pod.affinity import PodTerm
from scheduler.core.snapshot.node_index import Column
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.pod_queries import Pods, namespaces_of
from scheduler.core.snapshot.podclass import PodClass, PodTraits
from scheduler.core.snapshot.snapshot import Amounts, Mask, NodeTraits

_REMEMBERED = 1024


class FilteredRows(msgspec.Struct, frozen=True, eq=False):
    """Rows that are out for one reason; `resolvable` where fewer residents could change that (preemption)."""

    rows: Mask
    reason: str
    resolvable: bool


class FilterResult(msgspec.Struct, frozen=True, eq=False):
    """`refusals` in the order in which a node is told; `most` is how many more a row takes at most, None: no limit.

    `apart`: with one more placed, the answer for other rows may change.
    """

    refusals: tuple[FilteredRows, ...] = ()
    most: Amounts | None = None
    apart: bool = False


class FilterRequest:
    """One pod of a class, its PodTraits, the index of the other pods, and the nodes of `traits`."""

    def __init__(self, pod_index: PodIndex, traits: NodeTraits, pod_class: PodClass, pod_traits: PodTraits) -> None:
        self.pod_index = pod_index
        self.traits = traits
        self.pod_class = pod_class
        self.pod_traits = pod_traits

    @property
    def size(self) -> int:
        return len(self.traits.labels)

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The pod's own labels."""
        return dict(self.pod_traits.labels)

    def column(self, key: str) -> Column:
        """A node label."""
        return self.traits.index.column(self.traits.labels, key)

    def pods(self, term: PodTerm) -> Pods:
        """The pods that a term of this pod means."""
        known, key = self.traits.index.namespaces, (term, self.pod_traits.namespace)
        if key not in known:
            if len(known) >= _REMEMBERED:
                known.clear()
            known[key] = namespaces_of(term, self.pod_traits.namespace, self.traits.related.namespaces)
        return Pods(term.selector, known[key])

    def matches_itself(self, pods: Pods) -> bool:
        """Whether this pod is one of those."""
        return pods.holds(self.pod_traits, self.labels)
