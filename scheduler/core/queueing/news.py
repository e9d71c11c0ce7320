"""News and needs: whether what happened may help a workload that did not fit; kube-scheduler's queueing hints in small.

A workload is tried again only for news about what kept it out. A refusal that no row of `_ABOUT`
knows waits for a change of a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag, auto

import msgspec

from model.node import Node
from model.resources import PODS
from scheduler.core.filters.fit import FitReport
from scheduler.core.ledger.charge import Charge
from scheduler.core.snapshot.podclass import PodClass

_INSUFFICIENT = "Insufficient "
_TOO_MANY_PODS = "Too many pods"


class NewsKind(Flag):
    """Kinds of news.

    CAPACITY: some amounts became free, by a pod that went, a node that grew or room that is no longer kept.
    NODE_CHANGED: labels, taints or cordon, or a node may be judged again. PODS: some came, went or changed labels.
    PLACED: the scheduler itself has placed some, which helps nobody but those that look for company or for evenness.
    CPUS: a pod gave back CPUs of its own, or a node has others. QUEUES: a queue is another. JOBS: a workload waits no
    more.
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


class News(msgspec.Struct, frozen=True):
    """What happened, several kinds at once where a turn brought them; some amount of `resources` became free."""

    happened: NewsKind = NewsKind.NONE
    resources: frozenset[str] = frozenset()

    def __or__(self, other: News) -> News:
        return News(self.happened | other.happened, self.resources | other.resources)


class Need(msgspec.Struct, frozen=True):
    """What may help a parked workload: news of one of these kinds, or one of `resources` becoming free."""

    kinds: NewsKind
    resources: frozenset[str] = frozenset()

    def served_by(self, news: News) -> bool:
        """Whether the news is a reason to try again."""
        return bool(self.kinds & news.happened) or not self.resources.isdisjoint(news.resources)


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


def node_news(before: Node | None, after: Node) -> News:
    """What may fit on a node that did not; None: it was not there."""
    if before is None:
        return News(NewsKind.NODE_ADDED)
    grown = freed(name for name in after.allocatable if after.allocatable[name] > before.allocatable[name])
    if (before.labels, before.taints, before.unschedulable) != (after.labels, after.taints, after.unschedulable):
        return grown | News(NewsKind.NODE_CHANGED)
    return grown


def need_of(report: FitReport) -> Need:
    """What may help a workload that was refused so; a node that is feasible says nothing about the cause."""
    if report.feasible > 0:
        return ANYTHING
    reasons = {reason for reasons, _ in report.refused for reason in reasons}
    kinds = NewsKind.NODE_ADDED
    for reason in reasons:
        kinds |= _kinds(reason)
    return Need(kinds, frozenset(_resource(reason) for reason in reasons if _resource(reason)))


def _resource(reason: str) -> str:
    """The resource a refusal is about, empty where it is about something else."""
    if reason == _TOO_MANY_PODS:
        return PODS
    return reason.removeprefix(_INSUFFICIENT) if reason.startswith(_INSUFFICIENT) else ""


def _kinds(reason: str) -> NewsKind:
    if _resource(reason):
        return NewsKind.NONE
    return next((kinds for piece, kinds in _ABOUT if piece in reason.lower()), NewsKind.NODE_CHANGED)
