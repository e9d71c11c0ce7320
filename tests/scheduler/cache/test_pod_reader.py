"""The queue that a pod waits in and is charged to, by its own word and by that of others."""

from __future__ import annotations

import msgspec
import pytest
from cache_builders import empty_cache, feed, placed_in
from scheduler_builders import raw_node, raw_pod

from kube import objects
from kube.informer import ChangeKind

NAMES = {
    "annotation of Volcano": ("annotations", "scheduling.volcano.sh/queue-name"),
    "label of Koordinator": ("labels", "quota.scheduling.koordinator.sh/name"),
    "label of Kueue": ("labels", "kueue.x-k8s.io/queue-name"),
    "our label": ("labels", "sublet.dev/queue"),
}


@pytest.mark.parametrize(("where", "key"), NAMES.values(), ids=NAMES)
def test_a_pod_with_a_node_keeps_the_queue_that_it_named(where: str, key: str) -> None:
    """Another word gives no quota back that it uses; one that waits still moves."""
    cache = empty_cache()
    feed(cache, raw_node(), objects.Queue(objects.Metadata("team")), objects.Queue(objects.Metadata("other")))
    feed(cache, raw_pod("a", node_name="n1", **{where: {key: "team"}}), raw_pod("b", **{where: {key: "team"}}))
    for word in ({key: "other"}, {}):
        feed(cache, raw_pod("a", node_name="n1", **{where: word}), raw_pod("b", **{where: word}))
        cache.take_touched()
        assert placed_in(cache, "a", "b") == ["team", word.get(key, "default")]


def test_a_pod_with_a_node_keeps_the_queue_of_its_group() -> None:
    """Whether its PodGroup names another or is deleted."""
    cache, member = empty_cache(), {"scheduling.k8s.io/group-name": "g"}

    def group(queue: str) -> objects.VolcanoPodGroup:
        return objects.VolcanoPodGroup(objects.Metadata("g", "default", "g"), {"queue": queue})

    feed(cache, raw_node(), group("research"), raw_pod("a", annotations=member, node_name="n1"))
    feed(cache, raw_pod("b", annotations=member), group("other"))
    assert placed_in(cache, "a", "b") == ["research", "other"]
    feed(cache, group("other"), kind=ChangeKind.DELETED)
    feed(cache, objects.Queue(objects.Metadata("new")))
    cache.take_touched()
    assert placed_in(cache, "a", "b") == ["research", "default"]


CHARGED = "sublet.dev/charged-queue"


@pytest.mark.parametrize("relabelled", [True, False], ids=["names another", "is deleted"])
def test_the_next_leader_charges_what_the_group_named_at_the_binding(relabelled: bool) -> None:
    """By the annotation of the Binding; of a pod that waits it says nothing, nor where there is none."""
    cache, member = empty_cache(), {"scheduling.k8s.io/group-name": "g"}
    feed(cache, raw_node(), *(objects.Queue(objects.Metadata(name)) for name in ("research", "other")))
    if relabelled:
        feed(cache, objects.VolcanoPodGroup(objects.Metadata("g", "default", "g"), {"queue": "other"}))
    feed(cache, raw_pod("a", annotations={**member, CHARGED: "research"}, node_name="n1"))
    feed(cache, raw_pod("b", annotations={**member, CHARGED: ""}, node_name="n1"))
    feed(cache, raw_pod("c", annotations={**member, CHARGED: "research"}))
    feed(cache, raw_pod("d", annotations=member, node_name="n1"))
    cache.take_touched()
    group = "other" if relabelled else "default"
    assert placed_in(cache, "a", "b", "c", "d") == ["research", "default", group, group]


def _job(**labels: str) -> objects.Job:
    return objects.Job(objects.Metadata("j", "default", "uid-j", labels=labels), objects.JobSpec())


OWNER = objects.OwnerReference("batch/v1", "Job", "j", "uid-j", True)
OWNERS = {
    "a Job in another queue": _job(**{"sublet.dev/queue": "other"}),
    "a Job in a LocalQueue that is not there": _job(**{"kueue.x-k8s.io/queue-name": "none"}),
    "a Job that waits whole there": objects.Workload(
        objects.Metadata("w", "default", owner_references=[OWNER]), {"queueName": "none", "podSets": []}
    ),
}


@pytest.mark.parametrize("leader", ["this", "next"])
@pytest.mark.parametrize("owner", OWNERS.values(), ids=OWNERS)
@pytest.mark.parametrize("charged", ["", "team"])
def test_a_pod_that_gets_an_owner_stays_where_it_was_charged(
    charged: str, owner: objects.Job | objects.Workload, leader: str
) -> None:
    """Whoever may write a pod may give it one, also one that is made after it."""
    cache, named = empty_cache(), {"kueue.x-k8s.io/workload": "w"}
    kueue = objects.LocalQueue(objects.Metadata("a", "default"), {"clusterQueue": "c"})
    feed(cache, raw_node(), kueue, *(objects.Queue(objects.Metadata(name)) for name in ("team", "other")))
    labels = {"sublet.dev/queue": "team"} if not charged else {}
    runs = raw_pod("a", node_name="n1", labels=labels, annotations={**named, CHARGED: charged})
    metadata = msgspec.structs.replace(runs.metadata, owner_references=[OWNER])
    owned = msgspec.structs.replace(runs, metadata=metadata)
    feed(cache, *((runs, owned, owner) if leader == "this" else (owner, owned)))
    cache.take_touched()
    assert placed_in(cache, "a") == ["team"]


def test_a_pod_of_an_admitted_job_stays_where_it_was_charged_without_its_owner() -> None:
    """Its own label says another queue, which never took it: the next leader charges it as this one did."""
    cache = empty_cache()
    feed(cache, raw_node(), *(objects.Queue(objects.Metadata(name)) for name in ("team", "other")))
    feed(cache, raw_pod("a", node_name="n1", labels={"sublet.dev/queue": "other"}, annotations={CHARGED: "team"}))
    cache.take_touched()
    assert placed_in(cache, "a") == ["team"]


def test_a_pod_that_waits_leaves_the_local_queue_of_its_job_with_it() -> None:
    """Else it were bound there, and charged elsewhere by the next leader."""
    cache = empty_cache()
    kueue = objects.LocalQueue(objects.Metadata("a", "default"), {"clusterQueue": "team"})
    feed(cache, raw_node(), kueue, objects.Queue(objects.Metadata("team")), _job(**{"kueue.x-k8s.io/queue-name": "a"}))
    waits = raw_pod("a")
    feed(
        cache,
        msgspec.structs.replace(waits, metadata=msgspec.structs.replace(waits.metadata, owner_references=[OWNER])),
    )
    assert placed_in(cache, "a") == ["team"]
    feed(cache, _job())
    assert placed_in(cache, "a") == ["default"]


def test_a_pod_with_a_node_counts_to_no_queue_that_is_not_for_its_namespace() -> None:
    """Its author may have named the node; the rules of queues are looked at again when they change."""
    cache = empty_cache()
    labels = {"sublet.dev/queue": "team"}
    waits, runs = raw_pod("a", labels=labels), raw_pod("b", labels=labels, node_name="n1")

    def for_these(*namespaces: str, name: str = "team") -> objects.Queue:
        return objects.Queue(objects.Metadata(name, uid=name), {"admissionControl": {"namespaces": [*namespaces]}})

    def queues(*changed: objects.Queue) -> list[str]:
        feed(cache, *changed)
        cache.take_touched()
        return placed_in(cache, "a", "b")

    feed(cache, raw_node(), waits, runs)
    assert queues(for_these("other")) == ["team", "default"]
    assert queues(for_these("other", "default")) == ["team", "team"]
    assert queues(for_these("other"), for_these("other", name="default")) == ["team", ""]
