"""News and needs: whether what happened may help a workload that did not fit; kube-scheduler's queueing hints in small.

A workload is tried again only for news about what kept it out. A refusal that no row of `_ABOUT`
knows waits for a change of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Flag, auto

import msgspec

from model.node import Node
from model.resources import PODS
from scheduler.core.filters.fit import FitReport
from scheduler.core.ledger.charge import Charge
from scheduler.core.queues.headroom import BookVersion
from scheduler.core.snapshot.podclass import PodClass

_INSUFFICIENT = "Insufficient "
_TOO_MANY_PODS = "Too many pods"
_MOST_GROWN = 8


class NewsKind(Flag):
    """Kinds of news.

    CAPACITY: some amounts became free, by a pod that went or room that is no longer kept.
    NODE_CHANGED: labels, taints or cordon, or a node may be judged again. PODS: some came, went or changed labels.
    PLACED: the scheduler itself has placed some, which helps nobody but those that look for company or for evenness.
    CPUS: a pod gave back CPUs of its own, or a node has others. QUEUES: a queue is another. JOBS: a workload waits no
    more. GROWN: a node has more of something.
    """

    NONE = 0
    CAPACITY = auto()
    NODE_ADDED = auto()
    NODE_CHANGED = auto()
    PODS = auto()
    VOLUMES = auto()
    LOAD = auto()
    PLACED = auto()
    CPUS = auto()
    QUEUES = auto()
    JOBS = auto()
    GROWN = auto()


EVERYTHING = ~NewsKind.NONE
_ABOUT = (
    ("cpus available", NewsKind.CPUS | NewsKind.NODE_CHANGED),
    ("cpu topology", NewsKind.CPUS),
    ("cpu bind policy", NewsKind.CPUS | NewsKind.NODE_CHANGED),
    ("multiple cpus", NewsKind.CPUS | NewsKind.NODE_CHANGED),
    ("no node has label", NewsKind.NODE_CHANGED),
    ("have no label", NewsKind.NODE_CHANGED),
    ("pod affinity rules", NewsKind.PODS | NewsKind.PLACED | NewsKind.NODE_CHANGED),
    ("affinity rules", NewsKind.PODS | NewsKind.NODE_CHANGED),
    ("topology spread", NewsKind.PODS | NewsKind.PLACED | NewsKind.NODE_CHANGED),
    ("free ports", NewsKind.PODS),
    ("volume", NewsKind.VOLUMES | NewsKind.NODE_CHANGED),
    ("pvc", NewsKind.VOLUMES | NewsKind.NODE_CHANGED),
    ("usage exceed", NewsKind.LOAD | NewsKind.PODS),
    ("nodemetric", NewsKind.LOAD),
)
"""A piece of a refusal's text, in small letters, and what may change it; the texts are those of the filters."""


class Growth(msgspec.Struct, frozen=True):
    """A node that has more of `resources`: what is free there by now, and what it has in all."""

    resources: frozenset[str]
    free: Mapping[str, int]
    most: Mapping[str, int]


class News(msgspec.Struct, frozen=True):
    """What happened, several kinds at once where a turn brought them; some amount of `resources` became free, and
    these nodes have grown.
    """

    happened: NewsKind = NewsKind.NONE
    resources: frozenset[str] = frozenset()
    grown: tuple[Growth, ...] = ()

    def __or__(self, other: News) -> News:
        grown = _few((*self.grown, *other.grown))
        return News(self.happened | other.happened, self.resources | other.resources, grown)


class Need(msgspec.Struct, frozen=True):
    """What may help a parked workload: news of one of these kinds, one of `resources` becoming free, or a node that
    has more of one. `least` is what a member of it asks for at least, None where nodes are not what it lacks.
    `version` is that of the books by which alone its queue refused it: while they stand, what becomes free elsewhere
    is no help.
    """

    kinds: NewsKind
    resources: frozenset[str] = frozenset()
    least: Mapping[str, int] | None = None
    version: BookVersion | None = None

    def served_by(self, news: News) -> bool:
        """Whether the news is a reason to try again."""
        if self.kinds & news.happened or self.ended_by(news):
            return True
        return any(self._fits(each, each.most) for each in news.grown)

    def ended_by(self, news: News) -> bool:
        """Whether it is one to try at once. A node whose agent says that it has more says so as often as it likes, and
        what is not free there may be taken from others at most.
        """
        if self.kinds & news.happened & ~NewsKind.GROWN or not self.resources.isdisjoint(news.resources):
            return True
        return self.least is not None and any(self._fits(each, each.free) for each in news.grown)

    def _fits(self, node: Growth, amounts: Mapping[str, int]) -> bool:
        if self.resources.isdisjoint(node.resources):
            return False
        return all(amounts.get(resource, 0) >= amount for resource, amount in (self.least or {}).items())


ANYTHING = Need(EVERYTHING)
NOTHING = Need(NewsKind.NONE)


def freed(resources: Iterable[str]) -> News:
    """Some amount of each became free."""
    return News(NewsKind.CAPACITY, frozenset(resources))


def freed_by(pod_class: PodClass) -> News:
    """What a pod of the class takes became free."""
    return freed(name for name, _ in pod_class.request)


def released(before: Charge, after: Charge) -> Iterable[str]:
    """Resources of which a pod takes less of some node than it was charged for: it landed elsewhere, or shrank."""
    kept = dict(after.pod_class.request) if before.node == after.node else {}
    return (resource for resource, amount in before.pod_class.request if amount > kept.get(resource, 0))


def node_news(before: Node | None, after: Node, used: Callable[[], Mapping[str, int]] = dict) -> News:
    """What may fit on a node that did not; None: it was not there. `used` is what pods use there."""
    if before is None:
        return News(NewsKind.NODE_ADDED)
    more = frozenset(name for name in after.allocatable if after.allocatable[name] > before.allocatable[name])
    grown = News()
    if more:
        most, taken = after.allocatable.amounts, used()
        free = {name: amount - taken.get(name, 0) for name, amount in most.items()}
        grown = News(NewsKind.GROWN, grown=(Growth(more, free, most),))
    if (before.labels, before.taints, before.unschedulable) != (after.labels, after.taints, after.unschedulable):
        return grown | News(NewsKind.NODE_CHANGED)
    return grown


def need_of(report: FitReport, classes: Iterable[PodClass] = ()) -> Need:
    """What may help a workload that was refused so; a node that is feasible says nothing about the cause. `classes`
    are those of its members: where their queue gave them a flavour, it may give them another one next time.
    """
    classes = tuple(classes)
    if report.feasible > 0 or any(pod_class.flavors for pod_class in classes):
        return ANYTHING
    reasons = {reason for reasons, _ in report.refused for reason in reasons}
    kinds = NewsKind.NODE_ADDED
    for reason in reasons:
        kinds |= _kinds(reason)
    return Need(kinds, frozenset(_resource(reason) for reason in reasons if _resource(reason)), _least(classes))


def _least(classes: Iterable[PodClass]) -> Mapping[str, int]:
    """Of each resource that all of them ask for, the least."""
    requests = [dict(pod_class.request) for pod_class in classes]
    shared = set(requests[0]).intersection(*requests[1:]) if requests else set()
    return {resource: min(request[resource] for request in requests) for resource in shared}


def _few(grown: tuple[Growth, ...]) -> tuple[Growth, ...]:
    """Of many nodes one that has the most of each resource stands for all."""
    if len(grown) <= _MOST_GROWN:
        return grown
    free, most = dict[str, int](), dict[str, int]()
    for node in grown:
        free |= {name: max(amount, free.get(name, amount)) for name, amount in node.free.items()}
        most |= {name: max(amount, most.get(name, amount)) for name, amount in node.most.items()}
    return (Growth(frozenset[str]().union(*(node.resources for node in grown)), free, most),)


def _resource(reason: str) -> str:
    """The resource a refusal is about, empty where it is about something else."""
    if reason == _TOO_MANY_PODS:
        return PODS
    return reason.removeprefix(_INSUFFICIENT) if reason.startswith(_INSUFFICIENT) else ""


def _kinds(reason: str) -> NewsKind:
    if _resource(reason):
        return NewsKind.NONE
    return next((kinds for piece, kinds in _ABOUT if piece in reason.lower()), NewsKind.NODE_CHANGED)
