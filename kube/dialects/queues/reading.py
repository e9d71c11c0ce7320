"""Queue objects of all APIs read alike, and which of those with one name counts.

Ours counts first, then Volcano's, then the oldest ElasticQuota, then Kueue's ClusterQueue.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kube.dialects.queues import elastic_quota, kueue, sublet, volcano
from kube.dialects.queues.dialect import ALL, QueueDialect
from kube.objects import ClusterQueue, Cohort, ElasticQuota, Metadata, Queue, VolcanoQueue, unix_seconds
from model import queue
from model.fault import ConfigurationFault

AnyQueue = Queue | VolcanoQueue | ElasticQuota | ClusterQueue | Cohort


class QueueObject(msgspec.Struct, frozen=True):
    """An object that defines a queue: `queue` is None while it cannot be read, and for the whole cluster's own object.

    `where` is what messages call it; `namespaces` are those whose pods are in it where they name no queue; `problem`
    says why it cannot be read, `unheard` what of it is not acted on. `kind` tells those of one API apart. `fair`: its
    status says how it shares (Kueue's fairSharing).
    """

    dialect: QueueDialect
    where: str
    metadata: Metadata
    queue: queue.Queue | None = None
    namespaces: tuple[str, ...] = ()
    problem: str = ""
    status: Any = None
    unheard: str = ""
    kind: str = "Queue"
    fair: bool = False

    @property
    def name(self) -> str:
        """That of its queue."""
        name = self.metadata.name
        if self.kind == kueue.COHORT:
            return kueue.COHORT_PREFIX + name
        return elastic_quota.queue_name(name) if self.dialect is QueueDialect.ELASTIC_QUOTA else name

    @property
    def rank(self) -> tuple[int, int, float, str, str]:
        """The lowest one counts among those of one name."""
        created = unix_seconds(self.metadata.creation_timestamp)
        standing = elastic_quota.standing(self.metadata) if self.dialect is QueueDialect.ELASTIC_QUOTA else 0
        return (ALL.index(self.dialect), standing, created, self.metadata.namespace, self.metadata.name)


def dialect_of(item: object) -> QueueDialect | None:
    """Whose object it is; None for what is no queue."""
    match item:
        case Queue():
            return QueueDialect.SUBLET
        case VolcanoQueue():
            return QueueDialect.VOLCANO
        case ElasticQuota():
            return QueueDialect.ELASTIC_QUOTA
        case ClusterQueue() | Cohort():
            return QueueDialect.KUEUE
    return None


def read(source: AnyQueue) -> QueueObject:
    """Never fails: what is wrong is the `problem`."""
    match source:
        case Queue():
            found = _object(QueueDialect.SUBLET, sublet.where_of(source), source)
        case VolcanoQueue():
            found = _object(QueueDialect.VOLCANO, volcano.where_of(source), source)
        case ElasticQuota():
            found = _object(QueueDialect.ELASTIC_QUOTA, elastic_quota.where_of(source.metadata), source)
        case ClusterQueue() | Cohort():
            found = _object(QueueDialect.KUEUE, kueue.where_of(source), source)
    try:
        fair = isinstance(source, ClusterQueue) and kueue.shares_fairly(source)
        return msgspec.structs.replace(
            found, queue=_queue(source), namespaces=_namespaces(source), unheard=_unheard(source), fair=fair
        )
    except ConfigurationFault as fault:
        return msgspec.structs.replace(found, problem=str(fault))


def in_force(found: Iterable[QueueObject]) -> dict[str, QueueObject]:
    """Those that count, by the name of their queue."""
    chosen: dict[str, QueueObject] = {}
    for each in sorted(found, key=lambda one: one.rank):
        if each.queue is not None:
            chosen.setdefault(each.name, each)
    return chosen


def by_namespace(chosen: Iterable[QueueObject]) -> dict[str, str]:
    """Namespace → the queue of pods that name none. A quota of the namespace's own name comes before those that list
    it; of several of these the first by name counts.
    """
    found: dict[str, str] = {}
    ordered = sorted(chosen, key=lambda one: one.name)
    for each in ordered:
        for namespace in each.namespaces:
            found.setdefault(namespace, each.name)
    for each in ordered:
        if each.dialect is QueueDialect.ELASTIC_QUOTA and each.metadata.namespace == each.metadata.name:
            found[each.metadata.namespace] = each.name
    return found


def _object(dialect: QueueDialect, where: str, source: AnyQueue) -> QueueObject:
    return QueueObject(dialect, where, source.metadata, status=source.status, kind=type(source).__name__)


def _unheard(source: AnyQueue) -> str:
    match source:
        case ElasticQuota():
            return elastic_quota.unheard(source.metadata)
        case ClusterQueue():
            unmet = "; ".join(kueue.unmet(source))
            return f"{kueue.where_of(source)}: not acted on: {unmet}" if unmet else ""
    return ""


def _queue(source: AnyQueue) -> queue.Queue | None:
    match source:
        case Queue():
            return sublet.queue(source)
        case VolcanoQueue():
            return volcano.queue(source)
        case ElasticQuota():
            return elastic_quota.queue(source)
        case ClusterQueue():
            return kueue.cluster_queue(source)
        case Cohort():
            return kueue.cohort(source)


def _namespaces(source: AnyQueue) -> tuple[str, ...]:
    return elastic_quota.namespaces(source.metadata) if isinstance(source, ElasticQuota) else ()
