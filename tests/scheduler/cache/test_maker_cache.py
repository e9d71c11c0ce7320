"""Gangs of pods that other controllers make, placed as their objects come and change; nothing waits for ever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pytest
from scheduler_builders import raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from kube.dialects.gangs.makers import Maker
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.pod_feed import PodFeed
from scheduler.settings import SchedulerSettings

QUEUE = "sublet.dev/queue"
JOB_SET, LWS = "jobset.sigs.k8s.io/", "leaderworkerset.sigs.k8s.io/"
UNKNOWN = "is not known: it is gone, or the scheduler may not list and watch"


def named(name: str = "train", **more: Any) -> objects.Metadata:
    return objects.Metadata(name=name, namespace="default", uid=f"uid-{name}", **more)


def job(parallelism: int, *, succeeded: int = 0, completions: int | None = None, template: str = "") -> objects.Job:
    """It names queue `study`; `template` is the queue that its pods name."""
    inner = objects.PodTemplate(objects.Metadata(labels={QUEUE: template} if template else None))
    spec = objects.JobSpec(parallelism, completions or parallelism, inner)
    return objects.Job(named(labels={QUEUE: "study"}), spec, objects.JobStatus(succeeded))


def made(name: str, owner: str = "batch/v1 Job train", labels: Mapping[str, str] = {}, **more: Any) -> objects.Pod:
    """A pod of a controller; two fit on a node of 1000."""
    pod = raw_pod(name, labels=labels, **more)
    version, kind, of = owner.split()
    owners = [objects.OwnerReference(version, kind, of, "u", True)]
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=owners))


def of_job(count: int, **more: Any) -> list[objects.Pod]:
    return [made(f"p{index}", **more) for index in range(count)]


def of_job_set(part: str, count: int) -> list[objects.Pod]:
    labels = {JOB_SET + "jobset-name": "train", JOB_SET + "replicatedjob-name": part, JOB_SET + "job-index": "0"}
    return [made(f"{part}-{index}", f"batch/v1 Job train-{part}-0", labels) for index in range(count)]


def of_set(*workers: int) -> list[objects.Pod]:
    pods = []
    for worker in workers:
        labels = {LWS + "name": "train", LWS + "group-index": "0", LWS + "worker-index": str(worker)}
        pods.append(made(f"w{worker}", "apps/v1 StatefulSet train", labels, annotations={LWS + "size": "3"}))
    return pods


def job_set(*parts: tuple[str, int], order: str = "") -> objects.JobSet:
    """ReplicatedJobs of one Job each, by name and pods."""
    jobs = [objects.ReplicatedJob(name, 1, None, objects.JobTemplate(objects.JobSpec(n, n))) for name, n in parts]
    return objects.JobSet(named(), objects.JobSetSpec(jobs, objects.JobSetStartup(order)))


def world(nodes: int = 2, **settings: Any) -> World:
    configured = SchedulerSettings(**settings)
    cache = ClusterCache(configured.served, makers=configured.gang_makers)
    study = objects.Queue(objects.Metadata("study"), {})
    return World(configured, cache).see(study, *(raw_node(f"n{index}") for index in range(nodes)))


def placed(found: World) -> set[str]:
    found.turn()
    return set(found.binder.assigned)


def names(pods: list[objects.Pod]) -> set[str]:
    return {pod.metadata.name for pod in pods}


def told(found: World, name: str) -> str:
    """The newest message that a pod got."""
    found.turn(after=5.0)
    return found.told(name)[-1]


def test_a_job_with_a_queue_starts_whole() -> None:
    """Three of four are none, four go at once, into the queue that the Job names."""
    found = world().see(job(4), *of_job(3))
    assert placed(found) == set()
    assert found.cycle.backlog.held == 1
    found.see(*of_job(4))
    assert placed(found) == names(of_job(4))
    pod = found.cache.pods.find("default", "p0")
    assert pod is not None and pod.pod.spec.queue == "study"


@pytest.mark.parametrize("late", [False, True])
def test_a_job_without_a_queue_is_many_pods(late: bool) -> None:
    """As is one whose template names it, whose labels Kubernetes gives to a Job that has none."""
    found = world(nodes=1)
    for each in [*of_job(3), job(3, template="study")] if late else [job(3, template="study"), *of_job(3)]:
        found.see(each)
    assert len(placed(found)) == 2


def test_a_job_that_comes_after_its_pods() -> None:
    """Pods that waited one by one are its gang from then on."""
    found = world(nodes=1).see(*of_job(3))
    assert len(placed(found)) == 2
    found = world(nodes=0).see(*of_job(3))
    assert placed(found) == set()
    found.see(job(3), raw_node("n0"))
    assert placed(found) == set() and found.cache.pods.gang_keys() == {"default/job:train"}
    found.see(raw_node("n1"))
    assert placed(found) == names(of_job(3))


def test_what_has_finished_is_not_waited_for() -> None:
    """Of four one succeeded, and the others were evicted: the three that are made again go at once."""
    through = made("p0", node_name="n0", phase="Succeeded")
    found = world().see(job(4, succeeded=1), through, *of_job(4)[1:3])
    assert placed(found) == set()
    found.see(of_job(4)[3])
    assert placed(found) == {"p1", "p2", "p3"}
    found = world(nodes=1).see(job(4, succeeded=3), of_job(4)[3])
    assert placed(found) == {"p3"}


def test_a_job_that_is_deleted_leaves_pods() -> None:
    """What remains of it is no gang."""
    found = world(nodes=1).see(job(3), *of_job(2))
    assert placed(found) == set()
    found.gone(job(3))
    assert placed(found) == names(of_job(2))


def test_a_job_set_starts_whole() -> None:
    """The pods of all its Jobs, however many controllers make them."""
    parts = (of_job_set("driver", 1), of_job_set("workers", 3))
    found = world().see(job_set(("driver", 1), ("workers", 3)), *parts[1])
    assert placed(found) == set()
    found.see(*parts[0])
    assert placed(found) == names([*parts[0], *parts[1]])


def test_a_job_set_in_order() -> None:
    """The driver runs before anybody makes the workers, who then start together."""
    found = world().see(job_set(("driver", 1), ("workers", 3), order="InOrder"), *of_job_set("driver", 1))
    assert placed(found) == {"driver-0"}
    found.see(*of_job_set("workers", 2))
    assert placed(found) == {"driver-0"}
    found.see(*of_job_set("workers", 3))
    assert placed(found) == {"driver-0", "workers-0", "workers-1", "workers-2"}


def test_an_object_that_is_not_known() -> None:
    """The pods are held, and say which object is wanted and what right; then they go on."""
    found = world().see(*of_job_set("workers", 3))
    assert placed(found) == set()
    assert f"JobSet default/train {UNKNOWN} jobsets.jobset.x-k8s.io" in told(found, "workers-0")
    found.see(job_set(("workers", 3)))
    assert placed(found) == names(of_job_set("workers", 3))


@pytest.mark.parametrize(
    ("startup", "annotations"),
    [("LeaderReady", {}), ("LeaderCreated", {LWS + "exclusive-topology": "rack"})],
    ids=["ready", "exclusive"],
)
def test_workers_that_come_after_their_leader(startup: str, annotations: dict[str, str]) -> None:
    """Nobody makes them before the leader has a node: it is placed, and they start together."""
    lws = objects.LeaderWorkerSet(named(annotations=annotations), objects.LeaderWorkerSetSpec(startup))
    found = world().see(lws, *of_set(0))
    assert placed(found) == {"w0"}
    found.see(*of_set(1))
    assert placed(found) == {"w0"}
    found.see(*of_set(2))
    assert placed(found) == {"w0", "w1", "w2"}


def test_a_leader_and_its_workers() -> None:
    """Where they are made at once they start at once."""
    lws = objects.LeaderWorkerSet(named(), objects.LeaderWorkerSetSpec("LeaderCreated"))
    found = world().see(lws, *of_set(0, 1))
    assert placed(found) == set()
    found.see(*of_set(2))
    assert placed(found) == {"w0", "w1", "w2"}


def test_a_member_that_another_scheduler_places() -> None:
    """It is waited for, said so, and counts once it has a node."""
    lws = objects.LeaderWorkerSet(named(), objects.LeaderWorkerSetSpec("LeaderCreated"))
    found = world().see(lws, *of_set(0, 1))
    (other,) = of_set(2)
    theirs = msgspec.structs.replace(
        other, spec=msgspec.structs.replace(other.spec, scheduler_name="default-scheduler")
    )
    assert placed(found.see(theirs)) == set()
    assert "2 of 3 members exist (not counted: 1 of another scheduler)" in told(found, "w0")
    there = msgspec.structs.replace(theirs, spec=msgspec.structs.replace(theirs.spec, node_name="n0"))
    assert placed(found.see(there)) == {"w0", "w1"}


def test_a_pytorch_job() -> None:
    """Master and workers, by the replicas that its spec counts; its scheduling policy names the queue."""
    owner, label = "kubeflow.org/v1 PyTorchJob train", {"training.kubeflow.org/job-name": "train"}
    policy = objects.TrainingRunPolicy(objects.TrainingSchedulingPolicy(None, "study"))
    replicas = {"Master": objects.TrainingReplicas(1), "Worker": objects.TrainingReplicas(2)}
    found = world().see(objects.PyTorchJob(named(), objects.PyTorchJobSpec(replicas, policy)))
    pods = [made(f"t{index}", owner, label) for index in range(3)]
    assert placed(found.see(*pods[:2])) == set()
    assert placed(found.see(pods[2])) == names(pods)
    pod = found.cache.pods.find("default", "t0")
    assert pod is not None and pod.pod.spec.queue == "study"


def test_a_kind_that_is_switched_off() -> None:
    """Its pods are placed one by one, and its object is not asked for."""
    found = world(nodes=1, gang_makers=(Maker.JOB,)).see(*of_job_set("workers", 3))
    assert len(placed(found)) == 2


def test_pods_of_an_object_by_name() -> None:
    """Whichever controllers made them; gone ones are forgotten."""
    pods = of_job_set("workers", 2)
    found = world().see(job_set(("workers", 2)), *pods)
    found.turn()
    assert [pod.name for pod in found.cache.pods.made_by("default/train")] == ["workers-0", "workers-1"]
    found.gone(*pods).turn()
    assert found.cache.pods.made_by("default/train") == ()


def test_a_job_of_thousands_of_pods_that_is_changed_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may change a Job of 300 bytes had each of its pods charged anew each time, 0.15 s for 3,000."""
    found = world(nodes=1).see(job(4000), *of_job(3000))
    placed(found)
    went, moved = list[int](), PodFeed.moved

    def count(feed: PodFeed, uids: Iterable[str], now: float) -> None:
        told = tuple(uids)
        went.append(len(told))
        moved(feed, told, now)

    monkeypatch.setattr(PodFeed, "moved", count)
    for size in range(4001, 4021):
        found.see(job(size))
    found.turn(after=0.01)
    assert went.count(3000) <= 2 and least(found) < 4020
    found.turn(after=20.0)
    assert least(found) == 4020


def least(found: World) -> int:
    """How many members the gang of the first pod waits for."""
    record = found.cache.pods.find("default", "p0")
    assert record is not None and record.pod.spec.gang is not None and record.pod.spec.gang.spec is not None
    return record.pod.spec.gang.spec.min_member
