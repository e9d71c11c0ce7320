"""Pods by name, node and gang as they come, change and go."""

from __future__ import annotations

import msgspec
from cache_builders import empty_cache, feed
from scheduler_builders import raw_node, raw_pod

from kube.informer import ChangeKind
from model.workload import WorkloadId

MEMBER = {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "1"}


def test_each_is_found_where_it_is() -> None:
    """In the order of uids; one that moved is where it was no more, and with its last pod a gang is gone."""
    cache = empty_cache()
    pods = [raw_pod("b", node_name="n1", annotations=MEMBER), raw_pod("a", node_name="n1"), raw_pod("c")]
    feed(cache, raw_node(), *pods)

    def found() -> tuple[list[str], list[str], frozenset[str]]:
        of_gang = [record.pod.name for record in cache.pods.of_gang("default/g")]
        return [record.pod.name for record in cache.pods.on_node("n1")], of_gang, cache.pods.gang_keys()

    assert found() == (["a", "b"], ["b"], {"default/g"}) and len(cache.pods) == 3
    feed(cache, raw_pod("c", node_name="n1"))
    feed(cache, pods[0], kind=ChangeKind.DELETED)
    assert found() == (["a", "c"], [], frozenset())
    assert not cache.pods.exists(WorkloadId.gang("default/g")) and cache.pods.exists(WorkloadId.pod("default/c"))
    assert cache.pods.find("default", "b") is None and cache.pods.record("uid-b") is None


def test_members_count_by_what_is_charged() -> None:
    """One with a node is placed, one without waits."""
    cache = empty_cache()
    feed(cache, raw_node(), raw_pod("a", node_name="n1", annotations=MEMBER), raw_pod("b", annotations=MEMBER))
    members = cache.pods.members("default/g")
    assert [[pod.name for pod in each] for each in (members.placed, members.pending)] == [["a"], ["b"]]


def test_a_name_is_that_of_the_newest_pod() -> None:
    """One that is deleted after another of its name came takes the name with it no more."""
    cache = empty_cache()
    first = raw_pod("a")
    second = msgspec.structs.replace(first, metadata=msgspec.structs.replace(first.metadata, uid="second"))
    feed(cache, first, second)
    feed(cache, first, kind=ChangeKind.DELETED)
    record = cache.pods.find("default", "a")
    assert record is not None and record.pod.uid == "second"
