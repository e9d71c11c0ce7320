"""What the cluster's objects come to in the ledger, in whatever order they arrive."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import msgspec
import pytest
from scheduler_builders import raw_node, raw_pod

from kube import objects
from kube.dialects.gangs import podgroups
from kube.informer import Change, ChangeKind
from model.resources import BATCH_CPU, BATCH_MEMORY
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.settings import SchedulerSettings

LISTS = "quota.scheduling.koordinator.sh/namespaces"


def offering(**allocatable: str) -> facts.NodeSeen:
    """Node n1 of 1 CPU and 4Gi, and what its status offers."""
    node = raw_node()
    status = objects.NodeStatus({"cpu": "1", "memory": "4Gi"}, {"cpu": "1", "pods": "110", **allocatable})
    return facts.NodeSeen(Change(ChangeKind.MODIFIED, msgspec.structs.replace(node, status=status)))


def test_an_offer_beyond_the_node_counts_as_nothing() -> None:
    """It is told once, kept for whoever asks, and gone as soon as the node offers what it has."""
    cache = ClusterCache(SchedulerSettings().served)
    for amount in ("1000000", "1e30", "1001"):
        cache.apply(offering(**{BATCH_CPU: amount, BATCH_MEMORY: "1Gi"}))
        lent = cache.nodes["n1"].allocatable
        assert (lent[BATCH_CPU], lent[BATCH_MEMORY]) == (0, 1 << 30)
    assert f"{BATCH_CPU} counts as 0: the node's own cpu is 1000" in cache.offers.doubts["n1"]
    assert len(cache.take_touched().refusals) == 3
    cache.apply(offering(**{BATCH_CPU: "1000"}))
    assert cache.nodes["n1"].allocatable[BATCH_CPU] == 1000 and cache.offers.doubts == {}
    cache.apply(offering(**{BATCH_CPU: "1001"}))
    assert len(cache.take_touched().refusals) == 1
    cache.apply(facts.NodeSeen(Change(ChangeKind.DELETED, raw_node())))
    assert cache.offers.doubts == {}


RATIO = "node.koordinator.sh/cpu-normalization-ratio"


def claiming(ratio: str, amount: str) -> facts.NodeSeen:
    """The same node, with that CPU ratio."""
    change = offering(**{BATCH_CPU: amount}).change
    metadata = msgspec.structs.replace(change.object.metadata, annotations={RATIO: ratio})
    return facts.NodeSeen(Change(change.kind, msgspec.structs.replace(change.object, metadata=metadata)))


def configured(text: str, kind: ChangeKind = ChangeKind.MODIFIED) -> facts.ObjectSeen:
    metadata = objects.Metadata("slo-controller-config", "koordinator-system")
    return facts.ObjectSeen(Change(kind, objects.ConfigMap(metadata, {"cpu-normalization-config": text})))


def test_a_ratio_counts_as_far_as_people_allow_it() -> None:
    """Whoever has a token of an agent can write it; what `slo-controller-config` says it cannot."""
    cache = ClusterCache(SchedulerSettings().served)

    def counts() -> int:
        return cache.nodes["n1"].allocatable[BATCH_CPU]

    cache.apply(claiming("5.00", "1200"))
    assert counts() == 0 and "the node's own cpu is 1000" in cache.offers.doubts["n1"]
    cache.apply(configured('{"enable": true, "ratioModel": {"fast": {"baseRatio": 1.2}}}'))
    assert counts() == 1200 and cache.take_touched().refusals == [] and "n1" in cache.snapshot().names
    cache.apply(configured('{"enable": tru'))
    assert counts() == 1200 and [each.kind for each in cache.take_touched().refusals] == ["ConfigMap"]
    cache.apply(claiming("5.00", "1201"))
    assert counts() == 0 and "times its CPU ratio of 1.20, is 1200" in cache.offers.doubts["n1"]
    cache.apply(claiming("1.10", "1200"))
    assert counts() == 0 and "times its CPU ratio of 1.10, is 1100" in cache.offers.doubts["n1"]
    cache.apply(claiming("1.20", "1200"))
    assert counts() == 1200
    cache.apply(configured("", ChangeKind.DELETED))
    assert counts() == 0


def test_without_a_document_the_setting_counts() -> None:
    cache = ClusterCache(SchedulerSettings().served, ratio=1.5)
    cache.apply(claiming("5.00", "1500"))
    assert cache.nodes["n1"].allocatable[BATCH_CPU] == 1500
    cache.apply(claiming("5.00", "1501"))
    assert cache.nodes["n1"].allocatable[BATCH_CPU] == 0


def member(priority: int = 9500) -> objects.Pod:
    """On n1, of PodGroup g of scheduling.k8s.io."""
    pod = raw_pod(node_name="n1", priority=priority)
    spec = msgspec.structs.replace(pod.spec, scheduling_group=objects.SchedulingGroup("g"))
    return msgspec.structs.replace(pod, spec=spec)


def group(priority: int | None) -> objects.UpstreamPodGroup:
    policy = objects.SchedulingPolicy(gang=objects.GangPolicy(1))
    spec = objects.UpstreamPodGroupSpec(policy, priority=priority)
    return objects.UpstreamPodGroup(objects.Metadata(name="g", namespace="default", uid="g"), spec)


def seen(priority: int | None, kind: ChangeKind = ChangeKind.ADDED) -> facts.ObjectSeen:
    return facts.ObjectSeen(Change(kind, group(priority)))


def charged(*told: facts.Fact, raises: bool = False) -> int:
    """The priority at which the member may be preempted."""
    settings = SchedulerSettings(gang_priority_raises=raises)
    cache = ClusterCache(settings.served, defaults=settings.gangs)
    for fact in told:
        cache.apply(fact)
    charge = cache.ledger.charge("uid-p1")
    assert charge is not None
    return charge.priority


POD = facts.PodSeen(Change(ChangeKind.ADDED, member()))
NODE = facts.NodeSeen(Change(ChangeKind.ADDED, raw_node()))


@pytest.mark.parametrize("order", list(permutations((POD, NODE, seen(9000)))))
def test_a_members_priority_is_its_groups(order: tuple[facts.Fact, ...]) -> None:
    assert charged(*order) == 9000


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ((seen(7000, ChangeKind.MODIFIED),), 7000),
        ((seen(None, ChangeKind.MODIFIED),), 9500),
        ((seen(9000, ChangeKind.DELETED),), 9500),
        ((seen(9000, ChangeKind.DELETED), seen(3000)), 3000),
        ((facts.PodSeen(Change(ChangeKind.MODIFIED, member(9600))),), 9000),
        ((seen(9900, ChangeKind.MODIFIED),), 9500),
    ],
    ids=[
        "changed",
        "taken away",
        "group gone",
        "group made again",
        "another priority of the pod",
        "above the pod's own",
    ],
)
def test_what_the_group_says_later_counts(then: tuple[facts.Fact, ...], expected: int) -> None:
    assert charged(NODE, POD, seen(9000), *then) == expected


@pytest.mark.parametrize("order", list(permutations((POD, NODE, seen(9900)))))
def test_a_group_spares_its_members_where_the_operator_says_so(order: tuple[facts.Fact, ...]) -> None:
    """Else its word counts up to the pod's own priority: no ResourceQuota withholds a class from PodGroups."""
    assert [charged(*order, raises=raises) for raises in (False, True)] == [9500, 9900]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_times_of_a_podgroup_can_be_written_again(time: str) -> None:
    """Its status and its annotations are its users' to write, too: a time outside UTC's years ended the scheduler, and the next one."""
    told = objects.PodGroupStatus(schedule_start_time=msgspec.convert(time, objects.Time))
    annotations = {podgroups.PARTIAL_SINCE: time, podgroups.WHOLE_SINCE: time}
    group = objects.PodGroup(objects.Metadata("train", "default", annotations=annotations), status=told)
    cache = ClusterCache(SchedulerSettings().served)
    cache.apply(facts.PodGroupSeen(Change(ChangeKind.ADDED, group)))
    record = cache.gangs.get("default/train")
    assert record is not None
    for seconds in (record.written_status.start_seconds, record.times.partial_seconds, record.times.whole_seconds):
        assert 1 <= datetime.fromtimestamp(seconds, UTC).year <= 9999
