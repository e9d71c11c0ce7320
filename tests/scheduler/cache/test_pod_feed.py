"""Pods as they come: read and kept, moved with others' word, or refused."""

from __future__ import annotations

import msgspec
from cache_builders import empty_cache, feed, placed_in
from scheduler_builders import raw_node, raw_pod

from kube import objects
from kube.informer import ChangeKind
from model.resources import BATCH_CPU
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.refusals import Refusal
from scheduler.core.queueing.news import NewsKind

LISTS = "quota.scheduling.koordinator.sh/namespaces"


def test_a_term_about_nodes_that_cannot_be_read_closes_no_node() -> None:
    """Whoever may make a pod may name its node, and write what API servers admit and nobody can read."""
    cache = empty_cache()
    feed(cache, raw_node())
    preference = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["abc"]}]}
    terms = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"preference": preference}]}}
    pod = raw_pod(node_name="n1", batch_cpu="300")
    pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=terms))
    feed(cache, pod)
    snapshot = cache.snapshot()
    assert not snapshot.traits.closed.any() and cache.take_touched().refusals == []
    assert cache.ledger.nodes["n1"][BATCH_CPU] == 300


def test_pods_move_with_their_group_and_their_namespace() -> None:
    """With what they are charged; a queue that comes moves those that Kueue's word names."""
    cache = empty_cache()

    def group(queue: str, **spec: object) -> objects.VolcanoPodGroup:
        return objects.VolcanoPodGroup(objects.Metadata("g", "default", "g"), {"queue": queue, **spec})

    member = {"scheduling.k8s.io/group-name": "g"}
    pods = (
        raw_pod("a", annotations=member, node_name="n1"),
        raw_pod("b", labels={"kueue.x-k8s.io/queue-name": "team"}, node_name="n1"),
        raw_pod("c"),
    )
    feed(cache, raw_node(), *pods)
    assert placed_in(cache, "a", "b", "c") == ["default"] * 3
    feed(cache, group("research"))
    assert placed_in(cache, "a") == ["research"]
    feed(cache, objects.Queue(objects.Metadata("team", uid="q")))
    quota = objects.ElasticQuota(objects.Metadata("default", "default", "e"), {"max": {"cpu": 1}})
    feed(
        cache,
        objects.ElasticQuota(
            objects.Metadata("other", "kube-system", "o", annotations={LISTS: '["default"]'}), quota.spec
        ),
    )
    cache.take_touched()
    assert placed_in(cache, "a", "b", "c") == ["research", "team", "other"]


def test_a_pod_that_cannot_be_read_closes_its_node() -> None:
    """What it takes is not known; told once a version, until it can be read or is gone."""
    cache = empty_cache()
    broken = raw_pod("a", node_name="n1", batch_cpu="many")
    feed(cache, raw_node(), raw_node("n2"))

    def closed() -> list[bool]:
        return [bool(each) for each in cache.snapshot().traits.closed]

    assert closed() == [False, False]
    feed(cache, broken, broken)
    assert closed() == [True, False]
    assert [each.message.endswith("node n1 gets no new pods while this one is there") for each in told(cache)] == [True]
    feed(cache, raw_pod("a", node_name="n1"))
    assert closed() == [False, False] and NewsKind.NODE_CHANGED in cache.take_touched().news.happened
    feed(cache, broken)
    feed(cache, broken, kind=ChangeKind.DELETED)
    assert closed() == [False, False] and told(cache) == []


def told(cache: ClusterCache) -> list[Refusal]:
    return cache.take_touched().refusals
