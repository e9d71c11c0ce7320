"""Jobs of every kind wait whole, and what a Workload may ask for beyond its pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kueue_world import cluster_queue, local_queue
from suspended_world import SuspendedWorld, priority_class, template

from jobs.core.suspended.policy import ReadyPolicy, RequeueTime, SuspendedPolicy
from model.suspended.workload import ConditionName
from scheduler.settings import QueueSettings, SchedulerSettings

HIGH = priority_class("high", 1000)
KINDS: dict[str, Callable[[SuspendedWorld, str], None]] = {
    "Job": lambda world, name: world.job(name),
    "JobSet": lambda world, name: world.job_set(name, leader=(1, 4), workers=(2, 2)),
    "TrainingJob": lambda world, name: world.training_job(name),
}


@pytest.mark.parametrize("submit", KINDS.values(), ids=KINDS)
def test_it_waits_whole_and_runs(submit: Callable[[SuspendedWorld, str], None]) -> None:
    """Without a pod while another has the quota; then on all its seats, and its quota comes back at its end."""
    world = SuspendedWorld()
    world.job("before")
    world.settle()
    submit(world, "it")
    world.settle()
    assert world.pods("it") == []
    told = world.status("it").conditions[ConditionName.QUOTA_RESERVED]
    assert not told.holds and 'queue "team" may have 0 more of nvidia.com/gpu now, and 8 is asked for' in told.message
    world.end("before")
    world.settle()
    assert set(world.nodes("it")) == {"a0", "a1"}
    assert world.status("it").holds(ConditionName.PODS_READY)
    world.end("it")
    world.settle()
    assert world.status("it").finished
    world.job("after")
    world.settle()
    assert world.nodes("after") == ["a0", "a1"]


@pytest.mark.parametrize("submit", KINDS.values(), ids=KINDS)
def test_it_is_evicted_whole(submit: Callable[[SuspendedWorld, str], None]) -> None:
    """For a more urgent job: no pod is left, its templates are as they were, and it comes back with its age."""
    world = SuspendedWorld(HIGH)
    submit(world, "it")
    world.settle()
    (kind,) = [each for each in ("Job", "JobSet", "TrainingJob") if world.api.of(each)]
    created = world.workload("it").created_seconds
    running = world.api.get(kind, "it")["spec"]
    assert "kueue.x-k8s.io/workload" in str(running) and "nvidia.com/gpu.product" in str(running)
    world.job("urgent", priority="high")
    world.settle()
    assert world.nodes("urgent") == ["a0", "a1"] and world.pods("it") == []
    after = world.api.get(kind, "it")["spec"]
    assert after["suspend"] is True
    assert "kueue.x-k8s.io/workload" not in str(after) and "nvidia.com/gpu.product" not in str(after)
    assert world.status("it").conditions[ConditionName.EVICTED].reason == "Preempted"
    assert "respecify it" not in world.api.writes
    world.end("urgent")
    world.settle()
    assert set(world.nodes("it")) == {"a0", "a1"} and world.workload("it").created_seconds == created


@pytest.mark.parametrize("submit", KINDS.values(), ids=KINDS)
def test_one_that_names_no_queue_any_more_is_evicted_whole(submit: Callable[[SuspendedWorld, str], None]) -> None:
    """Whoever may change a job that runs took its label away, and with it whoever suspends it: what its queue had lent
    was never given back. Let go on again its pods get no node.
    """
    world = SuspendedWorld(HIGH)
    submit(world, "it")
    world.settle()
    (kind,) = [each for each in ("Job", "JobSet", "TrainingJob") if world.api.of(each)]
    world.unlabel(kind, "it")
    world.settle()
    assert set(world.nodes("it")) == {"a0", "a1"}
    world.job("urgent", priority="high")
    world.settle()
    assert world.nodes("urgent") == ["a0", "a1"] and world.pods("it") == []
    job = world.api.get(kind, "it")
    assert job["spec"]["suspend"] is True
    world.api.put(kind, {**job, "spec": {**job["spec"], "suspend": False}})
    world.settle()
    assert world.nodes("urgent") == ["a0", "a1"] and world.nodes("it") == []


def test_each_pod_set_has_its_own_seats() -> None:
    """The small pods come first, and leave the large one the node on which it has room."""
    world = SuspendedWorld()
    world.job_set("it", workers=(2, 2), leader=(1, 4))
    world.settle()
    by_set = {each["metadata"]["labels"]["set"]: each["spec"]["nodeName"] for each in world.pods("it")}
    assert by_set["leader"] != by_set["workers"]


LESS = {"kueue.x-k8s.io/job-min-parallelism": "1"}


def test_a_job_starts_with_less() -> None:
    """As many pods as there is quota for, of those that it may do with; once it was evicted it asks for all again."""
    world = SuspendedWorld(HIGH, nodes=4)
    world.job("before", pods=1, priority="high")
    world.settle()
    world.job("it", pods=3, annotations=LESS)
    world.settle()
    assert len(world.nodes("it")) == 1 and world.api.get("Job", "it")["spec"]["parallelism"] == 1
    admission = world.status("it").admission
    assert admission is not None and [each.count for each in admission.assignments] == [1]
    world.job("urgent", pods=1, priority="high")
    world.settle()
    assert (
        world.nodes("before")
        and world.api.get("Job", "it")["spec"]["parallelism"] == 3
        and world.workload("it").count == 3
    )
    for name in ("before", "urgent"):
        world.end(name)
    world.settle()
    assert len(world.nodes("it")) == 2


def test_with_less_than_it_needs_it_waits() -> None:
    """One of its least number of pods would have no quota."""
    world = SuspendedWorld()
    world.job("before", pods=1)
    world.settle()
    world.job("it", pods=3, annotations={"kueue.x-k8s.io/job-min-parallelism": "2"})
    world.settle()
    assert world.pods("it") == []
    assert "8 is asked for" in world.status("it").conditions[ConditionName.QUOTA_RESERVED].message


def test_pods_of_a_job_that_is_not_admitted_get_no_node() -> None:
    """Whoever lets its Job go on by hand gains nothing: it is suspended again, and its pods had no node."""
    world = SuspendedWorld()
    world.job("it", pods=1)
    world.settle(rounds=1)
    world.deactivate("it")
    world.settle()
    bound: list[str] = []
    world.api.checks.append(lambda: bound.extend(world.nodes("it")))
    world.resume("it")
    world.settle()
    assert bound == [] and world.made["it"] == 1 and world.api.get("Job", "it")["spec"]["suspend"] is True


def test_by_quota_alone() -> None:
    """As Kueue admits: whether or not nodes have room; pods that find none wait, and quota is taken."""
    queues = QueueSettings(admit_by_quota_alone=True)
    world = SuspendedWorld(nodes=1, settings=SchedulerSettings(queues=queues))
    world.job("it")
    world.settle()
    assert world.nodes("it") == ["a0"] and len(world.pods("it")) == 2
    admission = world.status("it").admission
    assert admission is not None and [(each.count, each.seats) for each in admission.assignments] == [(2, {})]
    queue = {each.queue.name: each for each in world.world.cycle.standings()}["team"]
    (local,) = world.world.cycle.submission_standings()
    cell = ("gpu-a100", "nvidia.com/gpu")
    assert (queue.running_jobs, queue.pending_jobs, queue.cells[cell].used) == (1, 0, 8)
    assert (local.running_jobs, local.pending_jobs, local.used[cell]) == (1, 0, 8)
    world.job("next", pods=1)
    world.settle()
    assert "may have 0 more" in world.status("next").conditions[ConditionName.QUOTA_RESERVED].message


def test_what_is_admitted_counts_before_it_has_a_pod() -> None:
    """In the standings of its queues."""
    world = SuspendedWorld()
    world.api.kill = "start it", True
    world.job("it")
    while not world.kills:
        world.settle(rounds=1)
    world.world.turn()
    queue = {each.queue.name: each for each in world.world.cycle.standings()}["team"]
    (local,) = world.world.cycle.submission_standings()
    assert (queue.running_jobs, local.running_jobs, queue.nominated_jobs) == (1, 1, 0)


def test_without_room_it_waits() -> None:
    """Not by quota alone: nobody else has its quota meanwhile, and it has none."""
    world = SuspendedWorld(nodes=1)
    world.job("it")
    world.settle()
    assert world.pods("it") == []
    world.job("next", pods=1)
    world.settle()
    assert world.nodes("next") == ["a0"]


READY = ReadyPolicy(enabled=True, timeout_seconds=60.0, block_admission=True)


def test_one_after_the_other() -> None:
    """While pods of an admitted job are not all ready no other is admitted, and it is told why."""
    settings = SchedulerSettings(
        suspended_jobs=SuspendedPolicy(ready=READY), queues=QueueSettings(admit_by_quota_alone=True)
    )
    world = SuspendedWorld(nodes=1, settings=settings)
    world.job("slow")
    world.job("next", pods=1)
    world.settle()
    assert world.nodes("slow") == ["a0"] and world.pods("next") == []
    message = world.status("next").conditions[ConditionName.QUOTA_RESERVED].message
    assert message == f"Workload {world.workload('slow').key} was admitted, and its pods are not all ready"
    world.now += 60.0
    world.settle()
    assert world.status("slow").conditions[ConditionName.EVICTED].reason == "PodsReadyTimeout"
    assert world.status("slow").requeues == 1 and world.status("slow").resting
    assert world.nodes("next") == ["a0"]


def test_a_boost_counts_with_its_priority() -> None:
    """An annotation of the Workload: one that runs is no victim of what its priority alone is below."""
    world = SuspendedWorld(HIGH)
    world.job("it")
    world.settle()
    world.annotate("it", "kueue.x-k8s.io/priority-boost", "1000")
    world.job("urgent", priority="high")
    world.settle()
    assert world.nodes("it") == ["a0", "a1"] and world.pods("urgent") == []
    world.annotate("it", "kueue.x-k8s.io/priority-boost", "much")
    world.settle()
    world.annotate("urgent", "kueue.x-k8s.io/priority-boost", "1")
    world.settle()
    assert world.nodes("urgent") == ["a0", "a1"]


def test_a_pod_that_is_made_again_is_let_through_whatever_was_promised_since() -> None:
    """Its job was admitted with it: a more urgent job, for which room is made, has its quota only after it."""
    world = SuspendedWorld(HIGH)
    slow = template(4) | {"metadata": {"annotations": {"sublet.dev/preemption-notice-seconds": "60"}}}
    world.job("one", template=slow)
    world.settle()
    world.now += 90.0  # nobody keeps its seats any more
    world.job("two", pods=1, priority="high")
    world.settle(3)
    world.lost("one")
    world.settle(5)
    assert world.made["one"] > 2 and world.world.meter.aside == 0


def test_pods_that_are_through_give_their_quota_back() -> None:
    """What a Job will not make again is free for the next, which runs beside the rest."""
    world = SuspendedWorld()
    world.job("it")
    world.job("next", pods=1)
    world.settle()
    assert world.pods("next") == []
    world.end("it", 1)
    world.settle()
    assert world.status("it").reclaimable == {"main": 1}
    assert len(world.nodes("it")) == 1 and len(world.nodes("next")) == 1


@pytest.mark.parametrize(("by", "first"), [("Eviction", "next"), ("Creation", "slow")])
def test_its_place_after_it_was_late(by: str, first: str) -> None:
    """One whose pods were not ready in time goes behind who came meanwhile, or has its old place, as the setting says."""
    ready = ReadyPolicy(enabled=True, timeout_seconds=60.0, timestamp=RequeueTime(by))
    settings = SchedulerSettings(
        suspended_jobs=SuspendedPolicy(ready=ready), queues=QueueSettings(admit_by_quota_alone=True)
    )
    world = SuspendedWorld(nodes=1, settings=settings)
    world.job("slow")
    world.settle()
    world.job("next")
    world.settle()
    world.change(cluster_queue("team", stopPolicy="Hold"))
    world.now = 1_900_000_000.0
    world.settle()
    assert world.status("slow").requeues == 1
    world.now += 100.0
    world.settle()
    assert world.pods("slow") == world.pods("next") == []
    world.change(cluster_queue("team"))
    world.settle()
    assert bool(world.nodes("next")) is (first == "next") and bool(world.nodes("slow")) is (first == "slow")


@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue"])
def test_a_stopped_queue_evicts_whole_jobs(kind: str) -> None:
    """HoldAndDrain: it is suspended, and comes back once the queue goes on."""
    world = SuspendedWorld()
    world.job("it")
    world.settle()
    stopped = {"stopPolicy": "HoldAndDrain"}
    world.change(cluster_queue("team", **stopped) if kind == "ClusterQueue" else local_queue("a", "team", **stopped))
    world.settle()
    told = world.status("it").conditions
    assert world.pods("it") == [] and world.api.get("Job", "it")["spec"]["suspend"] is True
    assert told[ConditionName.EVICTED].reason == f"{kind}Stopped" and told[ConditionName.REQUEUED].holds
    world.change(cluster_queue("team") if kind == "ClusterQueue" else local_queue("a", "team"))
    world.settle()
    assert world.nodes("it") == ["a0", "a1"]


@pytest.mark.parametrize("submit", KINDS.values(), ids=KINDS)
def test_one_whose_pods_are_refused_is_not_queued(submit: Callable[[SuspendedWorld, str], None]) -> None:
    """By a quota, Pod Security or a policy of its namespace: else it went before others, and kept seats from them."""
    world = SuspendedWorld(HIGH)
    world.job("before")
    world.settle()
    world.api.pods_refused = "forbidden: exceeded quota: no-system-pods"
    submit(world, "it")
    world.settle()
    assert [each["metadata"]["ownerReferences"][0]["name"] for each in world.api.of("Workload")] == ["before"]
    world.api.pods_refused = ""
    world.end("before")
    world.settle()
    assert set(world.nodes("it")) == {"a0", "a1"}


def test_a_job_that_saves_and_ends_on_notice_gives_its_quota_back() -> None:
    """Its pods exit by themselves once they are told, each time: the Workload is evicted, well before the deadline."""
    world = noticed(priority_class("high", 1000))
    world.job("two", pods=1, priority="high")
    save_and_end(world)
    assert world.status("one").conditions[ConditionName.EVICTED].reason == "Preempted"
    assert len(world.nodes("two")) == 1 and not world.status("one").admitted


def test_a_stopped_queue_evicts_a_job_that_saves_and_ends_on_notice() -> None:
    world = noticed()
    world.change(cluster_queue("team", stopPolicy="HoldAndDrain"))
    save_and_end(world)
    assert world.status("one").conditions[ConditionName.EVICTED].reason == "ClusterQueueStopped"
    assert not world.status("one").admitted and world.api.get("Job", "one")["spec"]["suspend"] is True


def noticed(*around: Any) -> SuspendedWorld:
    """A job that runs and asks for a minute's notice."""
    world = SuspendedWorld(*around)
    asks = {"metadata": {"annotations": {"sublet.dev/preemption-notice-seconds": "60"}}}
    world.job("one", template=template(4) | asks)
    world.settle()
    assert world.nodes("one") == ["a0", "a1"]
    return world


def save_and_end(world: SuspendedWorld) -> None:
    """Forty seconds, and the pods that run fail ten seconds after they were told."""
    for _ in range(4):
        world.settle(rounds=10)
        for each in [each for each in world.pods("one") if each["status"]["phase"] == "Running"]:
            world.api.put("Pod", {**each, "status": {"phase": "Failed"}})
