"""Starts of what waits in a scheduler: by deadlines of pods and of their jobs, by past runs, and why it is not known."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from kueue_world import GPU, cluster_queue, flavor, gpu_node, gpu_pod, local_queue, namespace, settled
from scheduler_fakes import World

from kube import objects
from kube.informer import ChangeKind
from model.estimates.start_estimate import EstimateBasis, StartEstimate
from model.workload import WorkloadId
from scheduler.queue_answers import QueueAnswers
from scheduler.settings import SchedulerSettings
from scheduler.start_estimates import StartEstimates

A = WorkloadId.pod("default/a")


def world(settings: SchedulerSettings | None = None) -> World:
    """A queue with 8 GPUs of one node."""
    found = World(settings).see(namespace(), flavor(), cluster_queue("team"), local_queue("team", "team"))
    return found.see(gpu_node("n1"))


def running(found: World, name: str = "r", deadline: int | None = None, **more: Any) -> objects.Pod:
    """A pod on all 8 GPUs since now."""
    pod = gpu_pod(name, node="n1", **more)
    started = datetime.fromtimestamp(found.clock.now, UTC)
    spec = msgspec.structs.replace(pod.spec, active_deadline_seconds=deadline)
    return msgspec.structs.replace(pod, spec=spec, status=msgspec.structs.replace(pod.status, start_time=started))


def estimates(found: World) -> StartEstimates:
    return StartEstimates(found.cache, found.cycle, found.clock)


def made(found: World, subject: WorkloadId = A) -> StartEstimate:
    """After some turns."""
    settled(found)
    estimates(found).make()
    told = found.cache.starts.of(subject)
    assert told is not None
    return told


def ran(found: World, name: str, seconds: float) -> None:
    """A pod that ran so long, and ended."""
    pod = running(found, name)
    found.see(pod).turn()
    found.clock.now += seconds
    done = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Succeeded"))
    found.see(done).turn()
    found.see(done, kind=ChangeKind.DELETED).turn()


def test_after_the_deadline_of_the_one_that_runs() -> None:
    """What is known of it is told with the job."""
    found = world()
    end = found.clock.now + 3600.0
    told = made(found.see(running(found, deadline=3600), gpu_pod("a")))
    assert told.start_seconds == pytest.approx(end)
    assert told.basis is EstimateBasis.DEADLINE and [each.name for each in told.ends] == ["pod/default/r"]
    account = QueueAnswers(found.cache, found.cycle, found.history, found.clock).job("default", "a")
    assert account is not None and account.start == told
    running_one = QueueAnswers(found.cache, found.cycle, found.history, found.clock).job("default", "r")
    assert running_one is not None and running_one.start is None


def test_after_the_deadline_of_its_job() -> None:
    """spec.activeDeadlineSeconds of a Job bounds its pods."""
    found = world()
    owner = objects.OwnerReference("batch/v1", "Job", "j", "uid-j", controller=True)
    pod = running(found)
    pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=[owner]))
    job = objects.Job(
        objects.Metadata(name="j", namespace="default", uid="uid-j"),
        objects.JobSpec(parallelism=1, completions=1, active_deadline_seconds=600),
    )
    end = found.clock.now + 600.0
    told = made(found.see(job, pod, gpu_pod("a")))
    assert (told.start_seconds, told.basis) == (pytest.approx(end), EstimateBasis.DEADLINE)


def test_by_past_runs() -> None:
    """Those of its queue and size, that ended in this process."""
    found = world()
    for number in range(8):
        ran(found, f"old-{number}", 1000.0)
    begun = found.clock.now
    told = made(found.see(running(found), gpu_pod("a")))
    assert told.start_seconds == pytest.approx(begun + 1000.0, abs=2.0)
    assert told.basis is EstimateBasis.HISTORY
    assert (told.ends[-1].runs, told.ends[-1].of) == (8, f"queue team 8 {GPU}")


def test_what_runs_still_is_known_to_run_long() -> None:
    """Few of its kind ended, after 100 s; many have run for longer: so will the next, most likely."""
    found = World().see(namespace(), flavor(), cluster_queue("team", gpus=96), local_queue("team", "team"))
    old = [running(found, f"long-{number}") for number in range(10)]
    old = [
        msgspec.structs.replace(p, spec=msgspec.structs.replace(p.spec, node_name=f"m{n}")) for n, p in enumerate(old)
    ]
    found.see(gpu_node("n1"), *(gpu_node(f"m{number}") for number in range(10)), *old).turn(after=50.0)
    for number in range(8):
        ran(found, f"old-{number}", 100.0)
    begun = found.clock.now
    told = made(found.see(running(found), gpu_pod("a")))
    assert told.start_seconds == pytest.approx(begun + 201.0, abs=2.0)


def test_an_eviction_is_no_end() -> None:
    """A pod that another took the place of says nothing of how long such pods run."""
    found = world()
    for number in range(8):
        pod = running(found, f"old-{number}")
        found.see(pod).turn()
        condition = objects.Condition("DisruptionTarget", "True", "PreemptionByScheduler")
        status = msgspec.structs.replace(pod.status, conditions=[condition])
        found.see(msgspec.structs.replace(pod, status=status)).turn(after=100.0)
        found.see(pod, kind=ChangeKind.DELETED).turn()
    assert made(found.see(running(found), gpu_pod("a"))).start_seconds is None


@pytest.mark.parametrize(
    ("pods", "why"),
    [
        ([gpu_pod("a")], "of 1 running workloads neither a deadline nor past runs tell when they end"),
        ([gpu_pod("a", gpus=16)], "team"),
        ([gpu_pod("a", queue="nowhere")], "LocalQueue default/nowhere does not exist"),
    ],
    ids=["nothing tells", "more than its queue may ever have", "no queue"],
)
def test_why_it_is_not_known(pods: list[objects.Pod], why: str) -> None:
    found = world()
    told = made(found.see(running(found), *pods))
    assert told.start_seconds is None and told.basis is EstimateBasis.UNKNOWN and why in told.why


def test_so_many_are_looked_at() -> None:
    """Of others is said that too many are before them."""
    policy = msgspec.structs.replace(SchedulerSettings().estimates, most_workloads=2)
    found = world(SchedulerSettings(estimates=policy))
    found.see(running(found, deadline=60), *(gpu_pod(name, created=at) for at, name in enumerate("abc")))
    assert made(found, WorkloadId.pod("default/c")).why == "more than 2 wait before it"
    assert made(found, A).start_seconds is not None


def test_a_round_of_its_own_accord() -> None:
    """Beside the turns; where estimates are switched off there are none."""
    policy = msgspec.structs.replace(SchedulerSettings().estimates, every_seconds=0.01)
    for enable in (True, False):
        found = world(SchedulerSettings(estimates=msgspec.structs.replace(policy, enable=enable)))
        settled(found.see(running(found, deadline=60), gpu_pod("a")))
        with contextlib.suppress(TimeoutError):
            asyncio.run(asyncio.wait_for(estimates(found).run(), 0.5))
        assert (found.cache.starts.of(A) is not None) is enable


# jobs that wait whole


def workload(name: str, gpus: int = 8, most: int | None = None) -> objects.Workload:
    container = {"name": "main", "resources": {"requests": {GPU: gpus}}}
    template = {"spec": {"containers": [container], "schedulerName": "koord-scheduler"}}
    sets = [{"name": "main", "count": 1, "template": template}]
    spec = {"queueName": "team", "podSets": sets, "active": True, "maximumExecutionTimeSeconds": most}
    owner = objects.OwnerReference("batch/v1", "Job", name, f"job-{name}", controller=True)
    metadata = objects.Metadata(name=name, namespace="default", uid=f"uid-{name}", owner_references=[owner])
    told = {key: value for key, value in spec.items() if value is not None}
    return objects.Workload(metadata, msgspec.Raw(msgspec.json.encode(told)))


def conditions(found: World) -> list[tuple[str, bool]]:
    """What the Workload is told where it is tried once more, and whether as an Event."""
    found.cycle.backlog.wake()
    return [(write.message, write.event) for write in found.turn(after=15.0).pod_conditions]


def test_a_workload_is_told_when_it_is_expected_to_start() -> None:
    """Its message gets the words without an Event, once; without an estimate it keeps those that it has."""
    found = world()
    found.see(running(found, deadline=100_000), workload("w"))
    (first, event), *_ = conditions(found)
    assert event and "expected to start" not in first
    estimates(found).make()
    ((told, event),) = conditions(found)
    assert told.startswith(f"{first}; expected to start about ") and not event
    assert told.endswith("UTC, after pod/default/r ends (by its deadline)")
    for _ in range(5):
        estimates(found).make()
        assert conditions(found) == []
    found.cache.starts.put({}, found.clock.now)
    assert conditions(found) == []


def test_a_turn_in_the_midst_of_a_round_changes_nothing_of_its_picture() -> None:
    """What ends meanwhile is counted to its queue once, at its expected end: b has room after a, not beside it."""
    found = world().see(gpu_node("n2"))
    pod, end = running(found, deadline=3600), found.clock.now + 3600.0
    first, second = gpu_pod("a", created=0), gpu_pod("b", created=1)
    first = msgspec.structs.replace(first, spec=msgspec.structs.replace(first.spec, active_deadline_seconds=600))
    settled(found.see(pod, first, second))
    steps = estimates(found).round()
    next(steps), next(steps)  # what waits, and the picture
    found.see(gpu_pod("a"), gpu_pod("b"), pod, kind=ChangeKind.DELETED).turn()
    for _ in steps:
        pass
    told = {name: found.cache.starts.of(WorkloadId.pod(f"default/{name}")) for name in "ab"}
    starts = {name: each.start_seconds for name, each in told.items() if each is not None}
    assert starts == {"a": pytest.approx(end), "b": pytest.approx(end + 600.0)}
