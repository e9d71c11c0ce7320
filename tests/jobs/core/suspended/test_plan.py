"""A job that waits whole, and whoever is killed after any write: it runs once, and its quota comes back."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from jobs.core.suspended.actions import (
    Deactivate,
    MakeWorkload,
    ReshapeWorkload,
    RestoreJob,
    StartJob,
    StopJob,
    SuspendedAction,
    Tell,
    WriteStatus,
)
from jobs.core.suspended.plan import plan, priority_of
from jobs.core.suspended.policy import FlavorPlace, ReadyPolicy, SuspendedFacts, SuspendedPolicy
from model.suspended import transitions
from model.suspended.job import JobEnd, PodTemplate, SuspendedJob, SuspendedKind
from model.suspended.workload import (
    ConditionName,
    EvictionReason,
    PodSetAssignment,
    WorkloadAdmission,
    WorkloadObject,
)

FACTS = SuspendedFacts({"high": 100}, {"usual": 7, "low": 1}, "usual", {"a100": FlavorPlace({"gpu": "a100"})})
ADMISSION = WorkloadAdmission("team", (PodSetAssignment("main", 2, {"cpu": "a100"}),))
PODS = (PodTemplate("main", 2, {"spec": {}}),)
JOB = SuspendedJob(SuspendedKind.JOB, "ns", "train", "uid", queue="a", pod_sets=PODS)


class World:
    """The two objects and a Job controller; `write` is what an API server would do."""

    def __init__(self, policy: SuspendedPolicy | None = None) -> None:
        self.job, self.workload, self.now = JOB, None, 1000.0
        self.policy = policy or SuspendedPolicy()
        self.workload: WorkloadObject | None = None
        self.runs = 0
        self.charged: list[bool] = []

    def next(self) -> SuspendedAction | None:
        return plan(self.job, self.workload, FACTS, self.policy, self.now).action

    def change(self, **fields: object) -> None:
        assert self.workload is not None
        self.workload = msgspec.structs.replace(self.workload, **fields)

    def admit(self) -> None:
        """The scheduler's write."""
        assert self.workload is not None and self.workload.waiting
        self.change(status=transitions.admitted(self.workload.status, ADMISSION, self.now))

    def write(self, action: SuspendedAction) -> None:
        replace = msgspec.structs.replace
        match action:
            case MakeWorkload(priority):
                self.workload = WorkloadObject(
                    "ns", "job-train", "w", owner="uid", queue="a", priority=priority.value, pod_sets=PODS
                )
            case ReshapeWorkload(priority):
                self.change(pod_sets=self.job.pod_sets, priority=priority.value, queue=self.job.queue)
            case WriteStatus(status):
                assert not self.job.pods or status.reserving, "quota is free while pods are there"
                self.change(status=status)
            case Deactivate():
                self.change(active=False)
            case StartJob():
                assert self.workload is not None and self.workload.status.admitted
                self.job = replace(self.job, suspended=False, injected=True, started=True, pods=2)
                self.runs += 1
            case StopJob():
                self.job = replace(self.job, suspended=True)
            case RestoreJob():
                assert not self.job.started
                self.job = replace(self.job, injected=False)

    def job_controller(self) -> None:
        """Ends the pods of a suspended job, one look later than it was suspended."""
        if self.job.suspended and (self.job.started or self.job.pods):
            self.job = msgspec.structs.replace(self.job, started=False, pods=0, ready=0)

    def settle(self) -> None:
        for _ in range(20):
            action = self.next()
            if action is None or isinstance(action, Tell):
                before = self.job
                self.job_controller()
                if self.job == before:
                    return
            else:
                self.write(action)
        raise AssertionError("it never comes to rest")

    def run(self) -> None:
        self.settle()
        self.admit()
        self.settle()


def _deactivate(world: World) -> None:
    world.change(active=False)


def _preempt(world: World) -> None:
    assert world.workload is not None
    status = transitions.evicted(
        world.workload.status, EvictionReason.PREEMPTED, "for another", world.now, "InClusterQueue"
    )
    world.change(status=status)


def _end(world: World) -> None:
    world.job = msgspec.structs.replace(world.job, pods=0, ready=2, end=JobEnd(True, "through"))


def _late(world: World) -> None:
    world.now += 400.0


HAPPENS: dict[str, tuple[Callable[[World], None], str, bool]] = {
    "deactivated": (_deactivate, "Deactivated", True),
    "preempted": (_preempt, "Preempted", True),
    "its pods are late": (_late, "PodsReadyTimeout", True),
    "it ended": (_end, "", False),
}


@pytest.mark.parametrize("killed_after", range(12))
@pytest.mark.parametrize(("happens", "reason", "stopped"), HAPPENS.values(), ids=HAPPENS)
def test_a_kill_after_any_write(
    happens: Callable[[World], None], reason: str, stopped: bool, killed_after: int
) -> None:
    """Whoever is killed between two writes begins with what the objects say: the outcome is the same."""
    world = World(SuspendedPolicy(ready=ReadyPolicy(enabled=True)))
    world.run()
    happens(world)
    for _ in range(killed_after):
        action = world.next()
        if action is not None:
            world.write(action)
        world.job_controller()
    world.settle()
    assert world.workload is not None
    status = world.workload.status
    assert world.runs == 1
    assert world.job.suspended is stopped
    assert not status.reserving
    if stopped:
        assert not world.job.injected and world.job.pods == 0
        assert status.conditions[ConditionName.EVICTED].reason == reason
        assert status.holds(ConditionName.REQUEUED) is (reason == "Preempted")
    else:
        assert status.conditions[ConditionName.FINISHED].reason == "Succeeded"


def test_back_off_doubles_and_ends_by_time() -> None:
    """Rests 60 s, then 120 s; past the limit it is deactivated, and says why."""
    world = World(SuspendedPolicy(ready=ReadyPolicy(enabled=True, backoff_limit_count=2)))
    for rest in (60.0, 120.0):
        world.run()
        _late(world)
        world.settle()
        assert world.workload is not None and not world.workload.waiting
        assert world.workload.status.requeue_seconds == world.now + rest
        world.now += rest
        world.settle()
        assert world.workload.waiting
    world.run()
    _late(world)
    world.settle()
    assert world.workload is not None and not world.workload.active
    told = world.workload.status.conditions[ConditionName.EVICTED].message
    assert told == "The workload is deactivated due to exceeding the maximum number of re-queuing retries"


def test_the_longest_time_counts_over_all_runs() -> None:
    """What ran before an eviction counts."""
    world = World()
    world.run()
    world.change(max_seconds=100)
    world.job = msgspec.structs.replace(world.job, max_seconds=100)
    world.now += 60.0
    _preempt(world)
    world.settle()
    world.run()
    assert world.workload is not None and world.workload.status.past_seconds == 60
    assert plan(world.job, world.workload, FACTS, world.policy, world.now).again_seconds == 40.0
    world.now += 40.0
    world.settle()
    assert not world.workload.active and world.job.suspended


LOOKS: dict[str, tuple[SuspendedJob, type[object] | None]] = {
    "no Workload yet": (JOB, MakeWorkload),
    "not suspended": (msgspec.structs.replace(JOB, suspended=False), StopJob),
    "unreadable": (msgspec.structs.replace(JOB, problem="Job ns/train: spec"), Tell),
    "no such class": (msgspec.structs.replace(JOB, priority_class="none"), Tell),
    "ended before": (msgspec.structs.replace(JOB, end=JobEnd(True)), None),
}


@pytest.mark.parametrize(("job", "action"), LOOKS.values(), ids=LOOKS)
def test_a_job_without_a_workload(job: SuspendedJob, action: type[object] | None) -> None:
    """What is done first."""
    found = plan(job, None, FACTS, SuspendedPolicy(), 0.0).action
    assert (type(found) if found is not None else None) is action


def test_changed_while_it_waits() -> None:
    """Its Workload asks for the same again."""
    world = World()
    world.settle()
    world.job = msgspec.structs.replace(world.job, pod_sets=(PodTemplate("main", 3, {"spec": {}}),))
    world.settle()
    assert world.workload is not None and world.workload.count == 3


def test_flavors() -> None:
    """Started with the labels of its flavour; one that is gone keeps it waiting, and is named."""
    world = World()
    world.settle()
    world.admit()
    started = world.next()
    assert isinstance(started, StartJob) and started.injections[0].node_selector == {"gpu": "a100"}
    told = plan(world.job, world.workload, SuspendedFacts(), world.policy, world.now).action
    assert told == Tell("FlavorMissing", "it is admitted, and ResourceFlavor a100 does not exist; create it")


@pytest.mark.parametrize(
    ("job", "value"),
    [
        (JOB, 7),
        (msgspec.structs.replace(JOB, priority_class="high"), 100),
        (msgspec.structs.replace(JOB, pod_sets=(PodTemplate("m", 1, {"spec": {"priorityClassName": "low"}}),)), 1),
    ],
    ids=["the cluster's own", "of workloads", "of its pods"],
)
def test_priority(job: SuspendedJob, value: int) -> None:
    """The WorkloadPriorityClass counts first."""
    assert priority_of(job, FACTS).value == value


def test_a_job_that_cannot_be_queued_any_more_goes_all_the_same() -> None:
    """A label that nobody can read, written on a job that runs, keeps it from no eviction; stopped it is told."""
    world = World()
    world.run()
    world.job = msgspec.structs.replace(world.job, problem="Job ns/train: a label is 'soon'")
    _preempt(world)
    world.settle()
    assert world.job.suspended and not world.job.pods
    assert world.workload is not None and not world.workload.status.reserving
    assert world.next() == Tell("InvalidJob", "Job ns/train: a label is 'soon'")
