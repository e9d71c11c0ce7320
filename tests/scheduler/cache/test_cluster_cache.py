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
from model.queue import ROOT_QUEUE
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


def test_a_term_about_nodes_that_cannot_be_read_closes_no_node() -> None:
    """Whoever may make a pod may name its node, and write what API servers admit and nobody can read."""
    cache = ClusterCache(SchedulerSettings().served)
    cache.apply(facts.NodeSeen(Change(ChangeKind.ADDED, raw_node())))
    preference = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["abc"]}]}
    terms = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"preference": preference}]}}
    pod = raw_pod(node_name="n1", batch_cpu="300")
    pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=terms))
    cache.apply(facts.PodSeen(Change(ChangeKind.ADDED, pod)))
    snapshot = cache.snapshot()
    assert not snapshot.traits.closed.any() and cache.take_touched().refusals == []
    assert cache.ledger.nodes["n1"][BATCH_CPU] == 300


def placed_in(cache: ClusterCache, *names: str) -> list[str]:
    """The queues of pods and of their charges, in one word where both agree."""
    found = []
    for name in names:
        record = cache.find("default", name)
        assert record is not None
        charge = cache.ledger.charge(record.pod.uid)
        assert charge is None or charge.queue == record.pod.spec.queue
        found.append(record.pod.spec.queue)
    return found


def test_pods_move_with_their_group_and_their_namespace() -> None:
    """With what they are charged; a queue that comes moves those that Kueue's word names."""
    cache = ClusterCache(SchedulerSettings().served)

    def see(item: object) -> None:
        kinds = {objects.Pod: facts.PodSeen, objects.Node: facts.NodeSeen}
        cache.apply(kinds.get(type(item), facts.ObjectSeen)(Change(ChangeKind.MODIFIED, item)))  # type: ignore[arg-type]

    def group(queue: str, **spec: object) -> objects.VolcanoPodGroup:
        return objects.VolcanoPodGroup(objects.Metadata("g", "default", "g"), {"queue": queue, **spec})

    member = {"scheduling.k8s.io/group-name": "g"}
    see(raw_node())
    for pod in (
        raw_pod("a", annotations=member, node_name="n1"),
        raw_pod("b", labels={"kueue.x-k8s.io/queue-name": "team"}, node_name="n1"),
        raw_pod("c"),
    ):
        see(pod)
    assert placed_in(cache, "a", "b", "c") == ["default"] * 3
    see(group("research"))
    assert placed_in(cache, "a") == ["research"]
    see(objects.Queue(objects.Metadata("team", uid="q")))
    quota = objects.ElasticQuota(objects.Metadata("default", "default", "e"), {"max": {"cpu": 1}})
    see(
        objects.ElasticQuota(
            objects.Metadata("other", "kube-system", "o", annotations={LISTS: '["default"]'}), quota.spec
        )
    )
    cache.take_touched()
    assert placed_in(cache, "a", "b", "c") == ["research", "team", "other"]


def test_a_gang_takes_its_priority_from_a_class() -> None:
    """As it is now; its placed members too, and none where there is no such class."""
    cache = ClusterCache(SchedulerSettings().served)
    told = {"minMember": 1, "priorityClassName": "high"}
    group = objects.VolcanoPodGroup(objects.Metadata("g", "default", "g"), told)
    pod = raw_pod("a", annotations={"scheduling.k8s.io/group-name": "g"}, node_name="n1", priority=9000)
    for fact in (
        facts.NodeSeen(Change(ChangeKind.ADDED, raw_node())),
        facts.ObjectSeen(Change(ChangeKind.ADDED, group)),
        facts.PodSeen(Change(ChangeKind.ADDED, pod)),
    ):
        cache.apply(fact)

    def priority(value: int, kind: ChangeKind = ChangeKind.MODIFIED) -> tuple[int | None, int]:
        high = objects.PriorityClass(objects.Metadata("high"), value)
        cache.apply(facts.ObjectSeen(Change(kind, high)))
        charge = cache.ledger.charge(pod.metadata.uid)
        assert charge is not None
        return cache.gangs.priority("default/g"), charge.priority

    own = pod.spec.priority or 0
    assert (priority(7000), priority(8000)) == ((7000, 7000), (8000, 8000))
    assert priority(0, ChangeKind.DELETED) == (None, own)


def feed(cache: ClusterCache, *items: object, kind: ChangeKind = ChangeKind.MODIFIED) -> None:
    kinds = {objects.Pod: facts.PodSeen, objects.Node: facts.NodeSeen}
    for item in items:
        cache.apply(kinds.get(type(item), facts.ObjectSeen)(Change(kind, item)))  # type: ignore[arg-type]


def test_a_pod_takes_of_the_cluster_what_its_node_has() -> None:
    """Nothing without the node, nothing of what the node does not list; as nodes come, change and go."""
    cache, gpu = ClusterCache(SchedulerSettings().served), "nvidia.com/gpu"
    resources = objects.Resources({BATCH_CPU: "500", gpu: "1000"}, {BATCH_CPU: "500", gpu: "1000"})
    pod = raw_pod(node_name="n1", phase="Running")
    pod = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, containers=[objects.Container("main", resources)])
    )
    amounts: dict[str, str | int | float] = {"pods": "110", BATCH_CPU: "1000", gpu: "8"}
    with_gpus = msgspec.structs.replace(raw_node(), status=objects.NodeStatus(amounts, amounts))

    def used() -> tuple[int, int]:
        amounts = cache.ledger.used(ROOT_QUEUE)
        return (amounts.get(BATCH_CPU, 0), amounts.get(gpu, 0))

    feed(cache, pod)
    assert used() == (0, 0) and cache.ledger.nodes["n1"][BATCH_CPU] == 500
    feed(cache, raw_node())
    assert used() == (500, 0)
    feed(cache, with_gpus)
    assert used() == (500, 1000)
    feed(cache, raw_node(), kind=ChangeKind.DELETED)
    assert used() == (0, 0)
    cache.take_touched()
    feed(cache, raw_node())
    feed(cache, raw_node(), kind=ChangeKind.DELETED)
    assert BATCH_CPU in cache.take_touched().news.resources
    feed(cache, pod, kind=ChangeKind.DELETED)
    assert used() == (0, 0)


NAMES = {
    "annotation of Volcano": ("annotations", "scheduling.volcano.sh/queue-name"),
    "label of Koordinator": ("labels", "quota.scheduling.koordinator.sh/name"),
    "label of Kueue": ("labels", "kueue.x-k8s.io/queue-name"),
    "our label": ("labels", "sublet.dev/queue"),
}


@pytest.mark.parametrize(("where", "key"), NAMES.values(), ids=NAMES)
def test_a_pod_with_a_node_keeps_the_queue_that_it_named(where: str, key: str) -> None:
    """Another word gives no quota back that it uses; one that waits still moves."""
    cache = ClusterCache(SchedulerSettings().served)
    feed(cache, raw_node(), objects.Queue(objects.Metadata("team")), objects.Queue(objects.Metadata("other")))
    feed(cache, raw_pod("a", node_name="n1", **{where: {key: "team"}}), raw_pod("b", **{where: {key: "team"}}))
    for word in ({key: "other"}, {}):
        feed(cache, raw_pod("a", node_name="n1", **{where: word}), raw_pod("b", **{where: word}))
        cache.take_touched()
        assert placed_in(cache, "a", "b") == ["team", word.get(key, "default")]


def test_a_pod_with_a_node_keeps_the_queue_of_its_group() -> None:
    """Whether its PodGroup names another or is deleted."""
    cache, member = ClusterCache(SchedulerSettings().served), {"scheduling.k8s.io/group-name": "g"}

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
    cache, member = ClusterCache(SchedulerSettings().served), {"scheduling.k8s.io/group-name": "g"}
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


def test_a_pod_with_a_node_counts_to_no_queue_that_is_not_for_its_namespace() -> None:
    """Its author may have named the node; the rules of queues are looked at again when they change."""
    cache = ClusterCache(SchedulerSettings().served)
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
