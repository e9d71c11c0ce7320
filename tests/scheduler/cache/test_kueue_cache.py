"""Kueue's objects beside its queues, as they come, change and go."""

from __future__ import annotations

from typing import Any

from kueue_world import flavor, local_queue, named

from kube import objects
from kube.informer import Change, ChangeKind
from scheduler.cache.kueue_cache import KueueCache


class Told:
    def __init__(self) -> None:
        self.refused: dict[str, str] = {}
        self.cache = KueueCache(self.refuse, lambda where: self.refused.pop(where, None))

    def refuse(self, where: str, metadata: objects.Metadata, message: str) -> None:
        self.refused[where] = message

    def see(self, item: Any, kind: ChangeKind = ChangeKind.MODIFIED) -> bool:
        return self.cache.apply(Change(kind, item))


def test_each_kind() -> None:
    told = Told()
    assert told.see(flavor("a")) and told.see(local_queue("x", "team"))
    assert told.see(objects.WorkloadPriorityClass(objects.Metadata("high"), 10))
    assert told.see(named(objects.Topology, "racks", {"levels": [{"nodeLabel": "rack"}]}))
    cache = told.cache
    assert (set(cache.flavors), set(cache.submissions)) == ({"a"}, {"default/x"})
    assert (dict(cache.priorities), dict(cache.topologies)) == ({"high": 10}, {"racks": ("rack",)})
    assert cache.reads(flavor("a")) and not cache.reads(objects.Namespace())


def test_what_says_the_same_is_no_news() -> None:
    told = Told()
    assert told.see(flavor("a")) and not told.see(flavor("a"))
    assert told.see(flavor("a"), ChangeKind.DELETED) and not told.cache.flavors
    assert not told.see(flavor("a"), ChangeKind.DELETED)


def test_what_cannot_be_read_is_told_and_what_it_said_counts_on() -> None:
    told = Told()
    told.see(local_queue("x", "team"))
    assert not told.see(local_queue("x", ""))
    assert told.refused["LocalQueue default/x"].startswith("LocalQueue default/x: spec.clusterQueue")
    assert told.cache.submissions["default/x"].queue == "team"
    told.see(local_queue("x", "team"))
    assert not told.refused


def test_a_status_is_known_with_its_metadata() -> None:
    told = Told()
    source = objects.LocalQueue(objects.Metadata("x", "ns"), {"clusterQueue": "t"}, {"pendingWorkloads": 1})
    told.see(source)
    assert told.cache.source("ns/x") == (source.metadata, {"pendingWorkloads": 1})
    told.see(source, ChangeKind.DELETED)
    assert told.cache.source("ns/x") is None
