"""Queues as the scheduler keeps them: what is told, what is news, and where pods are."""

from __future__ import annotations

from typing import Any

import msgspec
from scheduler_builders import raw_pod

from kube.dialects.queues.dialect import QueueDialect
from kube.dialects.upstream import core_objects
from kube.informer import Change, ChangeKind
from kube.objects import ElasticQuota, Metadata, PodGroup, Queue, VolcanoQueue
from scheduler.cache.queue_cache import QueueCache

LISTS = "quota.scheduling.koordinator.sh/namespaces"


class Told:
    """A cache, and what it told, by where."""

    def __init__(self, **settings: Any) -> None:
        self.told: dict[str, str] = {}
        self.cache = QueueCache(self._refuse, self._settled, **settings)

    def _refuse(self, where: str, metadata: Metadata, text: str) -> None:
        self.told[where] = text

    def _settled(self, where: str) -> None:
        self.told.pop(where, None)

    def see(self, *sources: Any, kind: ChangeKind = ChangeKind.MODIFIED) -> Told:
        for each in sources:
            self.cache.apply(Change(kind, each))
        self.cache.queues()  # what they say together is told once somebody asks
        return self

    @property
    def sources(self) -> dict[str, str]:
        return {queue.name: queue.source for queue in self.cache.queues()}


def ours(name: str = "a", **spec: Any) -> Queue:
    return Queue(Metadata(name, uid=name), spec)


def quota(name: str, namespace: str, lists: str = "") -> ElasticQuota:
    return ElasticQuota(Metadata(name, namespace, uid=f"{namespace}/{name}", annotations={LISTS: lists}))


VOLCANOS = VolcanoQueue(Metadata("a", uid="v"))


def test_what_is_news() -> None:
    """A queue that comes, changes or goes; neither a status nor the same again."""
    world = Told()
    assert world.cache.changed and world.cache.seen() == ()
    for source in (ours(), ours(weight=2)):
        world.see(source)
        assert world.cache.changed and len(world.cache.seen()) == 1 and not world.cache.changed
    world.see(ours(weight=2), Queue(Metadata("a", uid="a"), {"weight": 2}, {"runningJobs": 3}))
    assert not world.cache.changed
    world.see(ours(), kind=ChangeKind.DELETED)
    assert world.cache.changed and world.cache.seen() == ()


def test_one_of_a_name_counts() -> None:
    """The other one says so, until it has the name alone."""
    world = Told().see(VOLCANOS, ours())
    assert world.sources == {"a": "Queue/a"}
    assert world.told == {
        "Queue.scheduling.volcano.sh a": "Queue.scheduling.volcano.sh a: has the name of Queue a, which counts "
        "(rename one of them)"
    }
    world.see(ours(), kind=ChangeKind.DELETED)
    assert (world.sources, world.told) == ({"a": "Queue.scheduling.volcano.sh/a"}, {})


def test_what_cannot_be_read() -> None:
    """What it said before goes on counting; one that never could be read is a problem of those who name it."""
    world = Told().see(ours("b", weight=0))
    assert world.cache.problems == {"b": world.told["Queue b"]} and world.sources == {}
    world.see(ours("a", weight=3), ours("a", weight=0))
    (kept,) = world.cache.queues()
    assert kept.weight == 3 and "spec.weight" in world.told["Queue a"] and "a" not in world.cache.problems
    world.see(ours("a", weight=4), ours("b"))
    assert (world.told, dict(world.cache.problems), set(world.sources)) == ({}, {}, {"a", "b"})


def test_dialects_are_switched() -> None:
    """What is not read is no queue."""
    cache = Told(dialects=(QueueDialect.SUBLET,)).cache
    assert cache.reads(ours()) and not cache.reads(VOLCANOS) and not cache.reads(quota("q", "n"))
    assert not Told().cache.reads(PodGroup()) and Told().cache.reads(VOLCANOS)


def placed(cache: QueueCache, group: str = "", namespace: str = "default", labels: Any = None) -> str:
    pod = core_objects.pod(raw_pod("p", labels=labels or {}))
    return cache.queue_of(msgspec.structs.replace(pod, namespace=namespace), group)


def test_where_pods_are() -> None:
    """By their word, that of the PodGroup or of the namespace's quota; Kueue's where a queue has that name."""
    world = Told()
    assert placed(world.cache, labels={"sublet.dev/queue": "x"}) == "x"
    assert placed(world.cache) == "default" and placed(world.cache, "g") == "g"
    both = {"kueue.x-k8s.io/queue-name": "a", "sublet.dev/queue": "x"}
    assert placed(world.cache, labels=both) == "x" and not world.cache.moved
    world.see(ours("a"))
    assert placed(world.cache, labels=both) == "a" and world.cache.moved
    world.see(quota("team", "kube-system", '["default"]'))
    assert placed(world.cache) == "team" and placed(world.cache, namespace="other") == "default"


def test_what_a_tenants_quota_says_of_others() -> None:
    """Nothing, and its writer is told, until it says so no more."""
    world = Told().see(quota("mine", "evil", '["default"]'))
    assert placed(world.cache) == "default" and "pods of other namespaces" in world.told["ElasticQuota evil/mine"]
    world.see(quota("mine", "evil", '["evil"]'))
    assert world.told == {} and placed(world.cache, namespace="evil") == "mine"
    heard: list[str] = []
    apart = Told(tell=lambda where, metadata, text: heard.append(where)).see(quota("mine", "evil", '["default"]'))
    assert (apart.told, heard) == ({}, ["ElasticQuota evil/mine"])


def test_names_and_sources() -> None:
    """`default` is there without an object."""
    world = Told().see(ours("a"))
    assert set(world.cache.names) == {"a", "default"}
    found = world.cache.source("a")
    assert found is not None and found.where == "Queue a" and world.cache.source("default") is None
