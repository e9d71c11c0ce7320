"""Flavour assignment: which flavours the pods of a workload get, and how.

Terms are Kueue's: https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import msgspec

from model.pod.affinity import NodeTerm
from model.pod.spec import Toleration
from model.queue import Cell


class FlavorRequest(msgspec.Struct, frozen=True):
    """Pods of one shape that ask for a flavour: `request` is of one pod, in base units.

    `node_terms` are the alternatives of its required node affinity, None without any.
    """

    name: str
    count: int
    request: Mapping[str, int] = {}
    node_selector: Mapping[str, str] = {}
    node_terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


class FlavorMode(IntEnum):
    """How a flavour serves a pod set, the worst first: never, as queues are written; later, since nobody may be
    evicted for it; by evictions; by evictions of what others borrow of its own; at once.
    """

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4

    @property
    def evicts(self) -> bool:
        """Whether somebody would have to go."""
        return self in (FlavorMode.PREEMPT, FlavorMode.RECLAIM)


class PodSetFlavors(msgspec.Struct, frozen=True):
    """What one pod set gets: `flavors` by resource, for `count` pods; `amounts` is what these take, by cell.

    `borrowing` is the height above the queue of the smallest subtree whose own amounts hold it, 0: it borrows nothing.
    `reason` says what is against it, one part a flavour, empty where it fits.
    """

    name: str
    count: int
    flavors: Mapping[str, str] = {}
    amounts: Mapping[Cell, int] = {}
    mode: FlavorMode = FlavorMode.FIT
    borrowing: int = 0
    reason: str = ""


class FlavorAssignment(msgspec.Struct, frozen=True):
    """The flavours of all pod sets of a workload; it is as good as the worst of them."""

    pod_sets: tuple[PodSetFlavors, ...]

    @property
    def mode(self) -> FlavorMode:
        return min((each.mode for each in self.pod_sets), default=FlavorMode.FIT)

    @property
    def borrowing(self) -> int:
        """The most that any of its pod sets borrows, as a height."""
        return max((each.borrowing for each in self.pod_sets), default=0)

    @property
    def reason(self) -> str:
        """What is against it, each pod set's part once."""
        return "; ".join(dict.fromkeys(each.reason for each in self.pod_sets if each.reason))

    @property
    def amounts(self) -> dict[Cell, int]:
        """What all take together."""
        total: dict[Cell, int] = {}
        for each in self.pod_sets:
            for cell, amount in each.amounts.items():
                total[cell] = total.get(cell, 0) + amount
        return total
