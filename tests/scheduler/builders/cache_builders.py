"""A cache by itself, and objects told to it."""

from __future__ import annotations

from kube import objects
from kube.informer import Change, ChangeKind
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.settings import SchedulerSettings


def empty_cache() -> ClusterCache:
    """Of the usual schedulers."""
    return ClusterCache(SchedulerSettings().served)


def feed(cache: ClusterCache, *items: object, kind: ChangeKind = ChangeKind.MODIFIED) -> None:
    """Each as the API server tells it."""
    kinds = {objects.Pod: facts.PodSeen, objects.Node: facts.NodeSeen}
    for item in items:
        cache.apply(kinds.get(type(item), facts.ObjectSeen)(Change(kind, item)))  # type: ignore[arg-type]


def placed_in(cache: ClusterCache, *names: str) -> list[str]:
    """The queues of pods and of their charges, in one word where both agree."""
    found = []
    for name in names:
        record = cache.pods.find("default", name)
        assert record is not None
        charge = cache.ledger.charge(record.pod.uid)
        assert charge is None or charge.queue == record.pod.spec.queue
        found.append(record.pod.spec.queue)
    return found
