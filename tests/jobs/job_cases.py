"""Jobs, pods and a cluster that are valid by default."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from jobs.core.plan import plan
from jobs.core.policy import JobFacts, JobPolicy
from model.job.actions import CreatePod, DeleteCommand, DeleteJob, DeletePod, EnsureObject, JobPlan, TellEvent
from model.job.job import (
    GroupTerms,
    Job,
    JobCommand,
    JobDialect,
    JobId,
    JobTask,
    LifecycleRule,
    Member,
    PodEvent,
    RuleAction,
)
from model.job.labels import JOB_RUN
from model.job.status import JobPhase, JobPod, JobStatus, PodPhase, TaskCounts

NOW = 1_700_000_000.0
TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "main", "image": "image"}]}}
POLICY = JobPolicy()
FACTS = JobFacts()
RESTARTS = (
    LifecycleRule(RuleAction.RESTART_JOB, (PodEvent.EVICTED,)),
    LifecycleRule(RuleAction.RESTART_JOB, (PodEvent.FAILED,)),
)


def task(name: str = "worker", replicas: int = 2, minimum: int | None = None, **more: Any) -> JobTask:
    return JobTask(name, replicas, replicas if minimum is None else minimum, more.pop("template", TEMPLATE), **more)


def job(*tasks: JobTask, dialect: JobDialect = JobDialect.TRAINING, **more: Any) -> Job:
    """Two workers that start together; every loss restarts all."""
    tasks = tasks or (task(),)
    least = sum(each.minimum for each in tasks)
    group = more.pop("group", GroupTerms(queue="research", minimum=least))
    return Job(
        **{
            "id": JobId(dialect, "ml", "train"),
            "uid": "12345678-9abc",
            "tasks": tasks,
            "group": group,
            "rules": RESTARTS,
            **more,
        }
    )


def pod(index: int = 0, phase: PodPhase = PodPhase.RUNNING, task: str = "worker", **more: Any) -> JobPod:
    """One that runs on a node of its own."""
    name = f"train-{task}-{index}"
    node = "" if phase is PodPhase.PENDING else f"n{index}"
    return JobPod(
        **{"member": Member(task, index), "name": name, "uid": f"uid-{name}", "phase": phase, "node": node, **more}
    )


def running(**more: Any) -> JobStatus:
    """Of a job whose two workers have been seen."""
    return JobStatus(
        **{
            "phase": JobPhase.RUNNING,
            "reason": "MinimumRunning",
            "since_seconds": NOW - 60,
            "began_seconds": NOW - 60,
            "tasks": {"worker": TaskCounts(running=2)},
            **more,
        }
    )


def planned(
    job: Job, status: JobStatus, pods: Iterable[JobPod] = (), now: float = NOW, facts: JobFacts = FACTS
) -> JobPlan:
    return plan(job, status, pods, facts, POLICY, now)


class Interrupted(Exception):
    """The controller was killed."""


class Cluster:
    """What an API server keeps of one job; `budget` writes are made before the controller is killed."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.status = JobStatus()
        self.pods: dict[str, JobPod] = {}
        self.objects: dict[str, EnsureObject] = {}
        self.created: list[tuple[str, int]] = []
        self.deleted = False
        self.commands: dict[str, JobCommand] = {}
        self.now = NOW
        self.budget = 1 << 30
        self._serial = 0

    def _write(self) -> None:
        if self.budget == 0:
            raise Interrupted
        self.budget -= 1

    def look(self) -> JobPlan:
        """One turn of a controller that knows nothing but what is here."""
        facts = JobFacts(commands=tuple(self.commands.values()))
        wanted = plan(self.job, self.status, tuple(self.pods.values()), facts, POLICY, self.now)
        if wanted.status != self.status:
            self._write()
            self.status = wanted.status
        for action in wanted.actions:
            self._act(action)
        return wanted

    def _act(self, action: object) -> None:
        match action:
            case CreatePod(member=member, body=body):
                self._write()
                name = body["metadata"]["name"]
                assert name not in self.pods, f"{name} is made twice"
                run = int(body["metadata"]["labels"][JOB_RUN])
                self._serial += 1
                uid = f"{name}-{self._serial}"
                self.pods[name] = JobPod(member, name, uid, run, PodPhase.PENDING, created_seconds=self.now)
                self.created.append((name, run))
            case DeletePod(name=name, uid=uid):
                self._write()
                assert self.pods[name].uid == uid
                self.change(name, leaving=True, evicted=self.pods[name].phase is not PodPhase.FAILED)
            case EnsureObject(name=name):
                if self.objects.get(name) != action:
                    self._write()
                    self.objects[name] = action
            case DeleteCommand(name=name, uid=uid):
                self._write()
                assert self.commands.pop(name).uid == uid
            case DeleteJob():
                self._write()
                self.deleted = True
            case TellEvent():
                pass

    def order(self, action: RuleAction | None, name: str = "c1") -> None:
        """Somebody gives a command."""
        self.commands[name] = JobCommand(name, f"uid-{name}", self.now, action, action.value if action else "Dance")

    def change(self, name: str, **fields: Any) -> None:
        self.pods[name] = msgspec.structs.replace(self.pods[name], **fields)

    def clear(self) -> None:
        """Pods that go are gone."""
        self.pods = {name: each for name, each in self.pods.items() if not each.leaving}

    def run_all(self) -> None:
        """What waits gets a node and runs."""
        for name, each in self.pods.items():
            if each.phase is PodPhase.PENDING and not each.leaving:
                self.change(name, phase=PodPhase.RUNNING, node="n1")

    def settle(self, until: Callable[[], bool] = lambda: False, turns: int = 30) -> None:
        """Turns of the controller and the node, until nothing changes."""
        for _ in range(turns):
            before = (self.status, dict(self.pods))
            self.look()
            self.clear()
            self.run_all()
            self.now += 1
            if until() or (self.status, self.pods) == before:
                return
