"""Jobs of both kinds that are valid by default."""

from __future__ import annotations

from typing import Any

import msgspec

from kube.objects import Metadata, TrainingJob, VolcanoJob
from model.condition import ConditionStatus
from model.job.status import Allocation, JobCondition, JobEvent, JobPhase, JobStatus, TaskCounts, World
from model.resources import ResourceVector

TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "image"}]}}
POLICIES = [{"event": "PodEvicted", "action": "RestartJob"}, {"event": "PodFailed", "action": "RestartJob"}]


def untyped(spec: Any) -> msgspec.Raw:
    """As an object has it."""
    return msgspec.Raw(msgspec.json.encode(spec))


def training(**spec: Any) -> TrainingJob:
    """Two pods that are alike; None takes a field away."""
    whole = {"jobType": "PyTorchJob", "resources": {"minReplicas": 2}, "template": TEMPLATE, **spec}
    told = {key: each for key, each in whole.items() if each is not None}
    return TrainingJob(Metadata(name="train", namespace="ml", uid="u1"), untyped(told))


def task(name: str, replicas: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "template": TEMPLATE, **more}


def volcano(annotations: dict[str, str] | None = None, **spec: Any) -> VolcanoJob:
    """A master and three workers, as in Volcano's examples."""
    whole = {"tasks": [task("master", 1), task("worker", 3)], **spec}
    return VolcanoJob(Metadata(name="train", namespace="ml", uid="u1", annotations=annotations), untyped(whole))


WHOLE = JobStatus(
    phase=JobPhase.RESTARTING,
    reason="Restarted",
    message="pod a failed",
    since_seconds=1_700_000_100.0,
    run=3,
    floors={"": 3, "worker": 2},
    failures=1,
    evictions=2,
    tasks={"worker": TaskCounts(pending=1, running=2, terminating=1)},
    began_seconds=1_700_000_000.0,
    ended_seconds=1_700_000_200.0,
    queued_seconds=1_700_000_050.0,
    running_seconds=60.0,
    conditions=(JobCondition("Accepted", ConditionStatus.TRUE, "Valid", "", 1_700_000_000.0),),
)
OF_TRAINING = {
    "scale": {"worker": 3},
    "scaled_seconds": 1_700_000_090.0,
    "shrunk": True,
    "world": World(3, 2, "0123456789ab"),
    "allocation": Allocation(ResourceVector({"nvidia.com/gpu": 8, "cpu": 1500, "memory": 1 << 30}), ("n1", "n2")),
    "events": (JobEvent("Restarted", "pod a failed", 1_700_000_100.0, True),),
}


def whole_status(**more: Any) -> JobStatus:
    """One that says everything both kinds keep, and what is said besides."""
    return JobStatus(**{**{name: getattr(WHOLE, name) for name in WHOLE.__struct_fields__}, **more})
