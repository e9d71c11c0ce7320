"""Kueue's objects govern pods: the example of the documents as it is to be read, and each rule of its queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from kueue_world import (
    GPU,
    V100,
    cluster_queue,
    flavor,
    gpu_node,
    gpu_pod,
    local_queue,
    namespace,
    settled,
    training,
    waits,
)
from scheduler_builders import raw_group
from scheduler_fakes import World

from kube import objects
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.queue_refusal import QueueRefusal
from scheduler.core.queues.policy import FairPreemption
from scheduler.settings import SchedulerSettings

ANY = [objects.Toleration(operator="Exists")]
TEAMS = (namespace("ml-research"), namespace("ml-production"))


def platform(a100: int = 8, v100: int = 4) -> World:
    """The example with so many nodes of 8 GPUs of each kind."""
    nodes = [gpu_node(f"a{number}") for number in range(a100)]
    nodes += [gpu_node(f"v{number}", V100) for number in range(v100)]
    return World().see(*TEAMS, *training(), *nodes)


def research(name: str, **more: Any) -> objects.Pod:
    return gpu_pod(name, "ml-research-queue", namespace="ml-research", whole=True, **more)


def production(name: str, **more: Any) -> objects.Pod:
    return gpu_pod(name, "ml-production-queue", namespace="ml-production", whole=True, **more)


def other() -> objects.ClusterQueue:
    """Another queue of the cohort, with A100 and all that these take."""
    amounts = {"cpu": 1000, "memory": "8Ti", GPU: 64}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    group = {"coveredResources": list(amounts), "flavors": [{"name": "gpu-a100", "resources": resources}]}
    found: objects.ClusterQueue = cluster_queue("other", "ai-platform", resourceGroups=[group])
    return found


def used(world: World, queue: str, flavor: str = "gpu-a100", resource: str = GPU) -> int:
    found = {each.queue.name: each for each in world.cycle.standings()}
    return found[queue].cells[flavor, resource].used


def placed(world: World, kind: str) -> int:
    return sum(node.startswith(kind) for node in world.binder.assigned.values())


def test_both_local_queues_share_one_quota() -> None:
    """(a) What research has is lacking to production, whatever its LocalQueue."""
    world = settled(platform().see(*(research(f"r{n}", created=n) for n in range(12))))
    assert (placed(world, "a"), placed(world, "v")) == (8, 4)
    settled(world.see(production("late", created=99.0)))
    assert "late" not in world.binder.assigned
    assert 'that is the maximum of queue "cohort/ai-platform"; nor is there enough memory, nvidia.com/gpu' in waits(
        world, "late", "ml-production"
    )


def test_those_who_lack_quota_alike_are_judged_once_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are told, in the words of the first; a thousand that wait cost little more than one."""
    world = settled(platform().see(*(research(f"r{n}", created=n) for n in range(12))))
    asked: list[str] = []
    refusal = world.cycle.quotas.refusal

    def counted(candidate: Candidate) -> QueueRefusal | None:
        asked.append(candidate.subject.name)
        return refusal(candidate)

    monkeypatch.setattr(world.cycle.quotas, "refusal", counted)
    world.see(*(research(f"late{n}", created=99.0) for n in range(20))).turn()
    assert len(asked) == 1
    assert len({waits(world, f"late{n}", "ml-research") for n in range(20)}) == 1
    assert "that is the maximum" in waits(world, "late19", "ml-research")


def test_priority_alone_separates_them() -> None:
    """(a) A job of higher priority evicts one of lower priority of its own ClusterQueue, whose LocalQueue it is not."""
    world = settled(platform().see(*(research(f"r{n}", created=n, node=f"a{n}") for n in range(8))))
    settled(world.see(*(research(f"s{n}", created=n, node=f"v{n}") for n in range(4))))
    settled(world.see(production("urgent", created=99.0, priority=1000)))
    assert len(world.evictor.evicted) == 1


def test_alone_in_its_cohort_it_borrows_nothing() -> None:
    """(b) borrowingLimit 16 has no effect until another queue joins: with room on nodes the ninth goes to V100."""
    world = settled(platform(a100=10, v100=0).see(*(research(f"r{n}", created=n) for n in range(10))))
    assert placed(world, "a") == 8
    settled(world.see(other()))
    assert placed(world, "a") == 10
    assert used(world, "training-cluster-queue") == 80


def test_gpus_are_borrowed_to_the_limit_and_cpus_without_one() -> None:
    """(c) 16 GPUs more, not 24; CPU and memory have no limit of their own, and follow."""
    world = platform(a100=12, v100=0).see(other())
    settled(world.see(*(research(f"r{n}", created=n) for n in range(12))))
    assert placed(world, "a") == 10
    assert used(world, "training-cluster-queue", resource="cpu") == 320_000


def test_all_resources_of_a_pod_come_from_one_flavour() -> None:
    """(d) 60 GPUs of A100 are used: CPUs for 8 more would be there, and the pod goes to V100 with all it asks for."""
    small = (research(f"s{n}", gpus=4, created=n) for n in range(15))
    world = settled(platform().see(*small))
    settled(world.see(research("big", created=99.0)))
    assert world.binder.assigned["big"].startswith("v")
    assert used(world, "training-cluster-queue", "gpu-v100", "cpu") == 32_000
    assert used(world, "training-cluster-queue", "gpu-a100", "cpu") == 240_000


def test_flavours_are_tried_in_order() -> None:
    """(e) A100 first; a pod that selects V100 itself goes there."""
    selects = {"node_selector": {"nvidia.com/gpu.product": V100}}
    world = settled(platform().see(research("any"), research("chosen", **selects)))
    assert (world.binder.assigned["any"][0], world.binder.assigned["chosen"][0]) == ("a", "v")


def test_eight_whole_nodes_fill_the_first_flavour() -> None:
    """(f) 64 GPUs, 256 CPUs and 2 TiB of A100, exactly; the ninth goes to V100."""
    world = settled(platform(a100=9).see(*(research(f"r{n}", created=n) for n in range(9))))
    assert (placed(world, "a"), placed(world, "v")) == (8, 1)
    amounts = (64, 256_000, 2 << 40)
    assert tuple(used(world, "training-cluster-queue", resource=name) for name in (GPU, "cpu", "memory")) == amounts


def test_quota_without_room_goes_to_the_next_flavour() -> None:
    """Quota and room in one decision: no A100 node is there, and its quota is no reason to wait for one."""
    world = settled(platform(a100=0).see(research("r")))
    assert world.binder.assigned["r"].startswith("v")


def test_what_a_pod_got_stays_with_it() -> None:
    """The flavour stands in an annotation of the pod, from its Binding."""
    world = settled(platform().see(research("r")))
    assert world.binder.told["r"]["sublet.dev/flavors"] == f"cpu=gpu-a100,memory=gpu-a100,{GPU}=gpu-a100"


def two(cohort: str = "team", **spec: Any) -> World:
    """Two queues with 8 GPUs each, on two nodes."""
    return World().see(
        namespace(),
        flavor(),
        gpu_node("a0"),
        gpu_node("a1"),
        cluster_queue("one", cohort, **spec),
        cluster_queue("two", cohort),
        local_queue("one", "one"),
        local_queue("two", "two"),
    )


def pods(queue: str, number: int, gpus: int = 4, **more: Any) -> list[objects.Pod]:
    return [gpu_pod(f"{queue}-{n}", queue, gpus, created=n, **more) for n in range(number)]


def test_a_drained_queue_gives_up_what_runs() -> None:
    """Once a pod; work of another queue, or of another LocalQueue, stays."""
    world = settled(two().see(*running("one", 2, "a0"), *running("two", 1, "a1")))
    settled(world.see(cluster_queue("one", "team", stopPolicy="HoldAndDrain")))
    assert world.evictor.evicted.keys() == {"one-on-a0-0", "one-on-a0-1"}
    settled(world.see(local_queue("two", "two", stopPolicy="HoldAndDrain")))
    assert "two-on-a1-0" in world.evictor.evicted


def test_a_strict_queue_goes_by_priority_then_time() -> None:
    """The head, which needs more than there is, holds up what is older and of lower priority."""
    world = two("", queueingStrategy="StrictFIFO").see(*running("one", 1, "a0"))
    settled(world.see(gpu_pod("old", "one", 4, created=1.0), gpu_pod("high", "one", 8, created=2.0, priority=10)))
    assert not world.binder.assigned
    settled(world.gone(*running("one", 1, "a0")))
    assert set(world.binder.assigned) == {"high"}


def test_local_queues_share_by_what_they_used() -> None:
    """Of one ClusterQueue: what used less goes first, whatever its age, and then in turn."""
    mode = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
    world = two("", **mode).see(local_queue("late", "one"), *running("one", 1, "a0"))
    settled(world)
    world.see(gpu_pod("more", "one", 4, created=1.0), gpu_pod("first", "late", 4, created=9.0))
    assert set(settled(world).binder.assigned) == {"first"}


PLACED: dict[str, tuple[Callable[[], World], list[objects.Pod], int]] = {
    "without a cohort nothing is borrowed": (lambda: two(""), pods("one", 4), 2),
    "in a cohort what is idle is": (lambda: two(), pods("one", 4), 4),
    "to the borrowing limit": (lambda: two(borrows=4), pods("one", 4), 3),
    "not what another does not lend": (
        lambda: two().see(cluster_queue("two", "team", lends=0)),
        pods("one", 4),
        2,
    ),
    "on hold nothing starts": (lambda: two(stopPolicy="Hold"), pods("one", 1), 0),
    "nor in a drained one": (lambda: two(stopPolicy="HoldAndDrain"), pods("one", 1), 0),
    "nor by a LocalQueue on hold": (
        lambda: two().see(local_queue("one", "one", stopPolicy="Hold")),
        pods("one", 1),
        0,
    ),
    "nor where no namespace is selected": (
        lambda: two().see(cluster_queue("one", "team", namespaceSelector=None)),
        pods("one", 1),
        0,
    ),
    "nor where another namespace is": (
        lambda: two().see(cluster_queue("one", "team", namespaceSelector={"matchLabels": {"team": "x"}})),
        pods("one", 1),
        0,
    ),
    "where its own is, it does": (
        lambda: two().see(
            cluster_queue("one", "team", namespaceSelector={"matchLabels": {"team": "x"}}), namespace(team="x")
        ),
        pods("one", 1),
        1,
    ),
    "nor where the flavour does not exist": (
        lambda: two().see(cluster_queue("one", "team", flavor="other")),
        pods("one", 1),
        0,
    ),
    "nor by a LocalQueue that is not there": (lambda: two(), pods("none", 1), 0),
    "a resource that no group covers is refused": (lambda: two(), pods("one", 1, whole=True), 0),
    "what asks for nothing of it needs no flavour": (lambda: two(), pods("one", 1, gpus=0, tolerations=ANY), 1),
    "a cohort of a cohort lends": (
        lambda: two("low").see(
            cluster_queue("two", "other"),
            *(objects.Cohort(objects.Metadata(name, uid=name), {"parentName": "top"}) for name in ("low", "other")),
        ),
        pods("one", 4),
        4,
    ),
    "a cohort has amounts of its own": (
        lambda: two("low").see(
            cluster_queue("two", "other"),
            objects.Cohort(
                objects.Metadata("low", uid="low"),
                {
                    "resourceGroups": [
                        {
                            "coveredResources": [GPU],
                            "flavors": [{"name": "gpu-a100", "resources": [{"name": GPU, "nominalQuota": 4}]}],
                        }
                    ]
                },
            ),
        ),
        pods("one", 4),
        3,
    ),
}


@pytest.mark.parametrize(("make", "waiting", "number"), PLACED.values(), ids=PLACED)
def test_as_many_are_placed(make: Callable[[], World], waiting: list[objects.Pod], number: int) -> None:
    assert len(settled(make().see(*waiting)).binder.assigned) == number


def running(queue: str, number: int, node: str, **more: Any) -> list[objects.Pod]:
    return [gpu_pod(f"{queue}-on-{node}-{n}", queue, 4, node=node, **more) for n in range(number)]


EVICTED: dict[str, tuple[dict[str, Any], list[objects.Pod], objects.Pod, int]] = {
    "by default nobody goes for one of the same queue": (
        {},
        [*running("one", 2, "a0"), *running("two", 2, "a1")],
        gpu_pod("new", "one", 4, priority=10),
        0,
    ),
    "lower priority does where the queue says so": (
        {"preemption": {"withinClusterQueue": "LowerPriority"}},
        [*running("one", 2, "a0"), *running("two", 2, "a1")],
        gpu_pod("new", "one", 4, priority=10),
        1,
    ),
    "equal priority does not": (
        {"preemption": {"withinClusterQueue": "LowerPriority"}},
        [*running("one", 2, "a0", created=5.0), *running("two", 2, "a1")],
        gpu_pod("new", "one", 4),
        0,
    ),
    "equal and newer does where the queue says so": (
        {"preemption": {"withinClusterQueue": "LowerOrNewerEqualPriority"}},
        [*running("one", 2, "a0", created=5.0), *running("two", 2, "a1")],
        gpu_pod("new", "one", 4),
        1,
    ),
    "by default nothing is taken back": (
        {},
        [*running("two", 2, "a0"), *running("two", 2, "a1")],
        gpu_pod("new", "one", 4, priority=10),
        0,
    ),
    "what another borrowed is, whatever its priority": (
        {"preemption": {"reclaimWithinCohort": "Any"}},
        [*running("two", 2, "a0", priority=100), *running("two", 2, "a1", priority=100)],
        gpu_pod("new", "one", 4),
        1,
    ),
    "of lower priority alone where the queue says that": (
        {"preemption": {"reclaimWithinCohort": "LowerPriority"}},
        [*running("two", 2, "a0", priority=100), *running("two", 2, "a1", priority=100)],
        gpu_pod("new", "one", 4),
        0,
    ),
    "not what is another's own": (
        {"preemption": {"reclaimWithinCohort": "Any"}},
        [*running("one", 2, "a0"), *running("two", 2, "a1")],
        gpu_pod("new", "one", 4, priority=10),
        0,
    ),
}


@pytest.mark.parametrize(("rules", "run", "new", "number"), EVICTED.values(), ids=EVICTED)
def test_as_many_are_evicted(rules: dict[str, Any], run: list[objects.Pod], new: objects.Pod, number: int) -> None:
    world = settled(two(**rules).see(*run))
    settled(world.see(new))
    assert len(world.evictor.evicted) == number


def test_the_preemptor_gets_what_it_made_room_for() -> None:
    """Once the victims are gone it has their quota, on their flavour, and nobody else takes it meanwhile."""
    world = settled(
        two(preemption={"reclaimWithinCohort": "Any"}).see(*running("two", 2, "a0"), *running("two", 2, "a1"))
    )
    settled(world.see(gpu_pod("new", "one", 4, created=9.0)))
    (victim,) = world.evictor.evicted
    (gone,) = (pod for pod in [*running("two", 2, "a0"), *running("two", 2, "a1")] if pod.metadata.name == victim)
    settled(world.see(gpu_pod("greedy", "two", 4, created=1.0, priority=100)).gone(gone))
    assert set(world.binder.assigned) == {"new"}
    assert (used(world, "one"), used(world, "two")) == (4, 12)


BORROWING = {
    "reclaimWithinCohort": "Any",
    "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 50},
}
TO_BORROW: dict[str, tuple[dict[str, Any], int, int, int]] = {
    "lower priority up to the threshold goes for one that borrows": (BORROWING, 10, 100, 1),
    "above the threshold nobody does": (BORROWING, 60, 100, 0),
    "nor of the same priority": (BORROWING, 10, 10, 0),
    "nor where the queue does not say so": ({"reclaimWithinCohort": "Any"}, 10, 100, 0),
}


@pytest.mark.parametrize(("rules", "theirs", "own", "number"), TO_BORROW.values(), ids=TO_BORROW)
def test_evictions_to_borrow(rules: dict[str, Any], theirs: int, own: int, number: int) -> None:
    """Both queues borrow of a third one: `one` has its own already, `two` more than its own."""
    world = two(preemption=rules).see(cluster_queue("three", "team", 16), gpu_node("a2"), gpu_node("a3"))
    world.see(*running("one", 2, "a0", priority=1000))
    for node in ("a1", "a2", "a3"):
        world.see(*running("two", 2, node, priority=theirs))
    settled(world)
    settled(world.see(gpu_pod("new", "one", 4, priority=own)))
    assert len(world.evictor.evicted) == number


SHARES: dict[str, tuple[tuple[FairPreemption, ...], int, int]] = {
    "by default one that borrows evicts nobody who borrows": ((), 1, 0),
    "from one that borrows more it takes where that leaves it no more": ((FairPreemption.FINAL_SHARE,), 1, 1),
    "not where its weight makes that one's share less": ((FairPreemption.FINAL_SHARE,), 9, 0),
    "where it has less than that one had": ((FairPreemption.INITIAL_SHARE,), 1, 1),
}


@pytest.mark.parametrize(("strategies", "weight", "number"), SHARES.values(), ids=SHARES)
def test_evictions_by_share(strategies: tuple[FairPreemption, ...], weight: int, number: int) -> None:
    """`two` borrows 16 of the 16 that a third queue lends, `one` would borrow 4 of them."""
    settings = SchedulerSettings()
    queues = msgspec.structs.replace(settings.queues, fair_preemption_strategies=strategies)
    world = World(msgspec.structs.replace(settings, queues=queues)).see(
        namespace(),
        flavor(),
        *(gpu_node(f"a{number}") for number in range(4)),
        cluster_queue("one", "team", preemption={"reclaimWithinCohort": "Any"}),
        cluster_queue("two", "team", fairSharing={"weight": weight}),
        cluster_queue("three", "team", 16),
        local_queue("one", "one"),
        local_queue("two", "two"),
        *running("one", 2, "a0"),
    )
    settled(world.see(*(pod for node in ("a1", "a2", "a3") for pod in running("two", 2, node))))
    settled(world.see(gpu_pod("new", "one", 4)))
    assert len(world.evictor.evicted) == number


def test_what_a_cohort_lent_to_another_comes_back() -> None:
    """The queue of a cohort that has lent takes back from a queue of the one that borrowed, two levels up."""
    cohorts = [objects.Cohort(objects.Metadata(name, uid=name), {"parentName": "top"}) for name in ("low", "other")]
    world = two("low", preemption={"reclaimWithinCohort": "Any"}).see(cluster_queue("two", "other"), *cohorts)
    settled(world.see(*running("two", 2, "a0"), *running("two", 2, "a1")))
    settled(world.see(gpu_pod("new", "one", 4)))
    assert len(world.evictor.evicted) == 1


def test_nothing_is_taken_back_across_cohorts() -> None:
    """Nodes are short, quota is not: what another cohort has is not this one's to take."""
    rules = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    world = two("here", preemption=rules).see(cluster_queue("two", "there", 8), cluster_queue("spare", "there", 8))
    settled(world.see(*running("two", 2, "a0"), *running("two", 2, "a1")))
    settled(world.see(gpu_pod("new", "one", 4, priority=10)))
    assert not world.evictor.evicted


def gang(name: str, count: int, minimum: int) -> list[Any]:
    """A PodGroup of the LocalQueue `one`, whose members ask for 8 GPUs each."""
    labels = {"pod-group.scheduling.sigs.k8s.io": name}
    members = []
    for number in range(count):
        pod = gpu_pod(f"{name}-{number}", "one", 8, created=number)
        metadata = msgspec.structs.replace(pod.metadata, labels={**(pod.metadata.labels or {}), **labels})
        members.append(msgspec.structs.replace(pod, metadata=metadata))
    return [raw_group(name, minimum=minimum), *members]


def waits_of_gang(world: World, name: str) -> str:
    found = world.history.newest(f"gang/default/{name}")
    return found.detail if found is not None else ""


def both(a100: int, v100: int) -> World:
    """Nodes and quota of 8 GPUs each, of so many nodes."""
    quota = [
        {"name": name, "resources": [{"name": GPU, "nominalQuota": 8 * number}]}
        for name, number in (("gpu-a100", a100), ("gpu-v100", v100))
    ]
    groups = [{"coveredResources": [GPU], "flavors": quota}]
    world = World().see(namespace(), flavor(), flavor("gpu-v100", V100), local_queue("one", "one"))
    world.see(cluster_queue("one", resourceGroups=groups))
    world.see(*(gpu_node(f"a{n}") for n in range(a100)), *(gpu_node(f"v{n}", V100) for n in range(v100)))
    return world


def test_a_gang_goes_to_the_flavour_that_has_room_for_all_of_it() -> None:
    world = settled(both(2, 3).see(*gang("train", 3, 3)))
    assert placed(world, "v") == 3
    assert used(world, "one", "gpu-v100") == 24 and used(world, "one", "gpu-a100") == 0


def test_a_gang_that_starts_with_fewer_gets_as_many_as_its_flavour_has() -> None:
    """Four would be welcome, two are needed: three fit V100, and the fourth is not mixed in from A100."""
    world = settled(both(1, 3).see(*gang("train", 4, 2)))
    assert (placed(world, "v"), placed(world, "a")) == (3, 0)
    assert "of queue" in waits_of_gang(world, "train")


def test_flavours_that_nodes_do_not_tell_apart() -> None:
    """Of two without labels the annotation of the Binding says which; a word of the pod's author does not."""
    quota = [{"name": name, "resources": [{"name": GPU, "nominalQuota": 8}]} for name in ("reserved", "spot")]
    groups = [{"coveredResources": [GPU], "flavors": quota}]
    tolerates = [{"key": GPU, "operator": "Exists"}]
    plain = [
        objects.ResourceFlavor(objects.Metadata(name, uid=name), {"tolerations": tolerates})
        for name in ("reserved", "spot")
    ]
    world = World().see(namespace(), *plain, gpu_node("a0"), gpu_node("a1"), local_queue("one", "one"))
    world.see(cluster_queue("one", resourceGroups=groups))
    settled(world.see(*pods("one", 2, 8)))
    assert {world.binder.told[name]["sublet.dev/flavors"] for name in ("one-0", "one-1")} == {
        f"{GPU}=reserved",
        f"{GPU}=spot",
    }
    for name, node in world.binder.assigned.items():
        world.see(gpu_pod(name, "one", 8, node=node, annotations=world.binder.told[name]))
    settled(world)
    assert (used(world, "one", "reserved"), used(world, "one", "spot")) == (8, 8)
    settled(world.see(gpu_pod("liar", "one", 4, node="a0", annotations={"sublet.dev/flavors": f"{GPU}=gpu-v100"})))
    assert (used(world, "one", "reserved"), used(world, "one", "spot")) == (12, 8)


def test_a_quota_that_is_cut_takes_nobody_s_node() -> None:
    """What runs stays and is counted; what waits waits until enough of it ended."""
    world = settled(two("").see(*running("one", 2, "a0")))
    settled(world.see(cluster_queue("one", gpus=4), gpu_pod("new", "one", 4)))
    assert not world.evictor.evicted and not world.binder.assigned
    assert used(world, "one") == 8


def test_others_have_what_work_of_flavours_leaves() -> None:
    """One capacity: a queue of ours shares the nodes' GPUs without those that a ClusterQueue's pods have."""
    world = two().see(objects.Queue(objects.Metadata("ours", uid="ours"), {}))
    settled(world.see(*running("one", 2, "a0")))
    assert world.cycle.quotas.quota is not None
    assert world.cycle.quotas.quota.headroom("ours", ("", GPU)).amount == 8
